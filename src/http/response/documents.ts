/**
 * Documents: responses that are the same for every client. Each is loaded and compressed at its first request, so
 * responses share one buffer and need no open file.
 */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

interface Document {
  read: () => Promise<Buffer>;
  /** The media type and other headers of the document. */
  headers: Record<string, string>;
}

export type Responder = ReturnType<typeof responderFor>;

export function serveDocument(app: FastifyInstance, url: string, document: Document): void {
  const respond = responderFor(document);
  app.route({ method: ['GET', 'HEAD'], url, handler: (request, reply) => respond(request, reply) });
}

/** Returns what `load` resolves to. It is called once, and again after a failure. */
export function lazily<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () =>
    (loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    }));
}

/** Reads the document once, because the files of the program do not change while it runs. */
export function responderFor({ read, headers }: Document) {
  const load = lazily(() => encode(read));
  return async (request: FastifyRequest, reply: FastifyReply, cacheControl = 'no-cache') => {
    const { plain, gzip } = await load();
    const isGzip = wantsGzip(request.headers['accept-encoding']);
    const { bytes, etag } = isGzip ? gzip : plain;
    reply.header('cache-control', cacheControl).headers(headers);
    reply.header('vary', 'Accept-Encoding').header('etag', etag);
    if (matchesEtag(request.headers['if-none-match'], etag)) {
      return reply.removeHeader('content-type').code(304).send();
    }
    if (isGzip) reply.header('content-encoding', 'gzip');
    return reply.send(bytes);
  };
}

/**
 * Brotli would save another 12 % of the largest document. It is not used, because browsers accept it only over TLS,
 * and a proxy that adds TLS can compress as well.
 */
async function encode(read: () => Promise<Buffer>) {
  const { gzip } = await import('node:zlib'); // loaded here to keep startup fast
  const plain = await read();
  const gzipped = await promisify(gzip)(plain); // runs in the thread pool
  return { plain: withEtag(plain), gzip: withEtag(gzipped) };
}

/** The bytes in one encoding, and their strong ETag. */
function withEtag(bytes: Buffer) {
  return { bytes, etag: `"${hash('sha256', bytes, 'base64url')}"` };
}

/** A member of Accept-Encoding that names gzip with a weight above 0 (RFC 9110, section 12.5.3). */
const gzipMember = /^\s*(?:x-)?gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*$)[01](?:\.\d*)?\s*)?$/i;

/** Others get plain bytes, which each client can read. */
function wantsGzip(acceptEncoding = ''): boolean {
  return acceptEncoding.split(',').some((member) => gzipMember.test(member));
}

/** Whether If-None-Match contains the ETag, by weak comparison (RFC 9110, section 13.1.2). */
function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.trim() === '*' || (ifNoneMatch.match(/"[^"]*"/g)?.includes(etag) ?? false);
}
