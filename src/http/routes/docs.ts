/**
 * Serves `/openapi.json`, the committed document with the URL of this service, and `/docs`, its reference for people.
 * `/problems/<kind>`, the type of a problem, redirects to its place in the reference.
 */
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { problemKinds } from '../../problem.ts';
import { serveDocument } from '../response/documents.ts';
import { pageHeaders } from '../response/headers.ts';
import { pathNotFound } from '../response/problems.ts';

const openapiFile = new URL('../../../openapi.json', import.meta.url);

export function docsRoutes(app: FastifyInstance, baseUrl: string): void {
  serveDocument(app, '/openapi.json', {
    read: () => openapiFor(baseUrl),
    headers: { 'content-type': 'application/json' },
  });
  serveDocument(app, '/docs', {
    read: readReference,
    headers: { ...pageHeaders, 'content-type': 'text/html; charset=utf-8' },
  });
  // The URLs are relative, so a path prefix works.
  app.get('/problems', (_, reply) => reply.redirect('docs#problems'));
  app.get<{ Params: { kind: string } }>('/problems/:kind', ({ params: { kind } }, reply) => {
    if (!Object.hasOwn(problemKinds, kind)) throw pathNotFound();
    return reply.redirect(`../docs#${kind}`);
  });
}

/** Without a base URL, the server URL is relative to that of the document, so a path prefix works. */
async function openapiFor(baseUrl: string): Promise<Buffer> {
  const document: object = JSON.parse(await readFile(openapiFile, 'utf8'));
  return Buffer.from(JSON.stringify({ ...document, servers: [{ url: baseUrl || '.' }] }));
}

/** The build adds the page to the package. A checkout generates it. */
async function readReference(): Promise<Buffer> {
  if (!import.meta.filename.endsWith('.ts')) {
    return readFile(new URL('../../web/reference.html', import.meta.url));
  }
  // The compiler must not follow this import, because the package does not contain tools/.
  const generator = new URL('../../../tools/reference/page.ts', import.meta.url);
  const { referencePage } = await import(generator.href);
  return Buffer.from(referencePage());
}
