/**
 * The response to an unknown path that a person has opened in a browser: a page that leads back. Others get a problem.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { pageHeaders, weightsIn } from './headers.ts';
import { sendText } from './send.ts';

/** Whether the client prefers HTML. A wildcard alone does not count: most API clients send one. */
export function prefersPage({ method, headers }: FastifyRequest): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const weights = weightsIn(headers.accept);
  const html = weights.get('text/html') ?? 0;
  const others = ['application/problem+json', 'application/json', 'application/*', '*/*'];
  return html > Math.max(...others.map((type) => weights.get(type) ?? 0));
}

export function sendNotFoundPage(reply: FastifyReply, pathPrefix: string): FastifyReply {
  return sendText(reply.headers(pageHeaders), 'text/html; charset=utf-8', page(pathPrefix));
}

function page(pathPrefix: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Page not found · Plant Store</title>
    <link rel="stylesheet" href="${pathPrefix}/web/styles/theme.css" />
  </head>
  <body>
    <main class="lone">
      <h1>Page not found</h1>
      <p>There is nothing at this address.</p>
      <p><a href="${pathPrefix}/">Plants</a> · <a href="${pathPrefix}/docs">API reference</a></p>
    </main>
  </body>
</html>
`;
}
