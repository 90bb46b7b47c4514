/**
 * `/openapi.json`, the contract as it is committed, and `/docs`, which shows it with Swagger UI out of
 * this installation: nothing is fetched from elsewhere, and a policy keeps it so.
 */
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { sendText } from './send.ts';

const documentFile = new URL('../../openapi.json', import.meta.url);

/** Where the published package keeps its copy of Swagger UI; a checkout has the package itself. */
const copied = fileURLToPath(new URL('./swagger-ui/', import.meta.url));

export const assets = {
  'swagger-ui.css': 'text/css',
  'swagger-ui-bundle.js': 'text/javascript',
} as const;

// The page needs scripts, styles and the API of its own origin, and nothing else.
const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// Addresses are relative to /docs, so that a path prefix in front of the service does no harm.
const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Plant Store API</title>
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="docs/swagger-ui.css" />
  </head>
  <body>
    <main id="reference"></main>
    <noscript>This page needs JavaScript; <a href="openapi.json">openapi.json</a> does not.</noscript>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`;

const start = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  validatorUrl: null,
});
`;

export function docsRoutes(app: FastifyInstance, baseUrl: string): void {
  let document: string | undefined;

  app.get('/openapi.json', async (_request, reply) => {
    document ??= documentFor(baseUrl);
    return sendText(reply, 'application/json', document);
  });

  app.get('/docs', async (_request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', contentSecurityPolicy)
      .header('x-content-type-options', 'nosniff')
      .header('referrer-policy', 'no-referrer')
      .send(page),
  );

  app.get('/docs/start.js', async (_request, reply) => reply.type('text/javascript').send(start));

  for (const [file, mediaType] of Object.entries(assets)) {
    app.get(`/docs/${file}`, async (_request, reply) =>
      reply
        .type(mediaType)
        .header('cache-control', 'public, max-age=3600')
        .send(createReadStream(join(assetFolder(), file))),
    );
  }
}

function documentFor(baseUrl: string): string {
  const document: object = JSON.parse(readFileSync(documentFile, 'utf8'));
  return JSON.stringify({ ...document, servers: [{ url: baseUrl || '/' }] });
}

function assetFolder(): string {
  if (existsSync(copied)) return copied;
  return dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
}
