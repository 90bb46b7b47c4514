/**
 * Serves `/openapi.json`, the committed document with the URL of this service, and `/docs`, its reference for people.
 */
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { serveDocument } from './documents.ts';
import { pageHeaders } from './headers.ts';

const openapiFile = new URL('../../openapi.json', import.meta.url);
const referenceFile = new URL('../web/reference.html', import.meta.url);

export function docsRoutes(app: FastifyInstance, baseUrl: string): void {
  serveDocument(app, {
    path: '/openapi.json',
    read: () => openapiFor(baseUrl),
    headers: { 'content-type': 'application/json' },
  });
  serveDocument(app, {
    path: '/docs',
    read: () => readFile(referenceFile),
    headers: { ...pageHeaders, 'content-type': 'text/html; charset=utf-8' },
  });
}

/** Without a base URL, the server URL is relative to that of the document, so a path prefix works. */
async function openapiFor(baseUrl: string): Promise<Buffer> {
  const document: object = JSON.parse(await readFile(openapiFile, 'utf8'));
  return Buffer.from(JSON.stringify({ ...document, servers: [{ url: baseUrl || '.' }] }));
}
