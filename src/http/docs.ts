/**
 * Serves `/openapi.json`, the committed document with the URL of this service, and `/docs`, which shows it in
 * Swagger UI. All files are local, and a content security policy blocks other origins.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { serveDocument } from './documents.ts';

const openapiFile = new URL('../../openapi.json', import.meta.url);

/** Swagger UI in the published package. A checkout has it in node_modules. */
const packagedAssets = fileURLToPath(new URL('./swagger-ui/', import.meta.url));

export const assets = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
} as const;

// The page needs only scripts, styles and the API of its own origin.
const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// URLs are relative to /docs, so that a path prefix works.
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

const startScript = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  validatorUrl: null,
});
`;

export function docsRoutes(app: FastifyInstance, baseUrl: string): void {
  serveDocument(app, {
    path: '/openapi.json',
    read: () => openapiFor(baseUrl),
    headers: { 'content-type': 'application/json' },
  });
  serveDocument(app, {
    path: '/docs',
    read: async () => Buffer.from(page),
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentSecurityPolicy,
      'referrer-policy': 'no-referrer',
    },
  });
  serveDocument(app, {
    path: '/docs/start.js',
    read: async () => Buffer.from(startScript),
    headers: { 'content-type': assets['swagger-ui-bundle.js'] },
  });
  for (const [file, mediaType] of Object.entries(assets)) {
    serveDocument(app, {
      path: `/docs/${file}`,
      read: () => readFile(join(assetFolder(), file)),
      headers: { 'content-type': mediaType, 'cache-control': 'public, max-age=3600' },
    });
  }
}

/** Without a base URL, the server URL is relative to that of the document, so a path prefix works. */
async function openapiFor(baseUrl: string): Promise<Buffer> {
  const document: object = JSON.parse(await readFile(openapiFile, 'utf8'));
  return Buffer.from(JSON.stringify({ ...document, servers: [{ url: baseUrl || '.' }] }));
}

function assetFolder(): string {
  if (existsSync(packagedAssets)) return packagedAssets;
  return dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
}
