/**
 * Documents: answers that are the same for everybody. Each is read and compressed with the first
 * request for it and then held, so any number of unread answers share one buffer and no open file.
 */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import type { FastifyInstance } from 'fastify';

export interface Document {
  path: string;
  read: () => Promise<Buffer>;
  /** Its media type and what else belongs to it. */
  headers: Record<string, string>;
}

/** The bytes in one encoding, and the strong validator of exactly these bytes. */
interface Representation {
  bytes: Buffer;
  etag: string;
}

interface Representations {
  plain: Representation;
  gzip: Representation;
}

export function serveDocument(app: FastifyInstance, { path, read, headers }: Document): void {
  let held: Promise<Representations> | undefined;
  const load = () =>
    (held ??= represent(read).catch((error: unknown) => {
      held = undefined; // the next request tries again
      throw error;
    }));

  app.route({
    method: ['GET', 'HEAD'],
    url: path,
    handler: async (request, reply) => {
      const { plain, gzip } = await load();
      const isZipped = wantsGzip(request.headers['accept-encoding']);
      const { bytes, etag } = isZipped ? gzip : plain;
      reply.header('cache-control', 'no-cache').headers(headers);
      reply.header('vary', 'Accept-Encoding').header('etag', etag);
      if (matchesEtag(request.headers['if-none-match'], etag)) {
        return reply.removeHeader('content-type').code(304).send();
      }
      if (isZipped) reply.header('content-encoding', 'gzip');
      return reply.send(bytes);
    },
  });
}

/**
 * Brotli would save 12 % more of the largest document. Browsers ask for it over TLS alone, and a proxy
 * that adds TLS can compress too.
 */
async function represent(read: () => Promise<Buffer>): Promise<Representations> {
  const { gzip } = await import('node:zlib'); // not at the start, which needs none
  const plain = await read();
  const zipped = await promisify(gzip)(plain); // on a thread of its own
  return { plain: withEtag(plain), gzip: withEtag(zipped) };
}

function withEtag(bytes: Buffer): Representation {
  return { bytes, etag: `"${hash('sha256', bytes, 'base64url')}"` };
}

/**
 * Whether gzip is acceptable and no less wanted than the plain bytes (RFC 9110, section 12.5.3). Plain
 * bytes are the answer to a client that accepts neither: it can do more with them than with an error.
 */
function wantsGzip(acceptEncoding = ''): boolean {
  const weights = new Map<string, number>();
  for (const one of acceptEncoding.toLowerCase().split(',')) {
    const [, coding = '', weight = '1'] =
      /^\s*([^\s;]+)\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?$/.exec(one) ?? [];
    weights.set(coding, Number(weight));
  }
  const any = weights.get('*');
  const gzip = weights.get('gzip') ?? weights.get('x-gzip') ?? any ?? 0;
  const plain = weights.get('identity') ?? 0; // acceptable, but nobody asked for it
  return gzip > 0 && gzip >= plain;
}

/** Whether If-None-Match names the tag; the comparison is weak (RFC 9110, section 13.1.2). */
function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.trim() === '*' || (ifNoneMatch.match(/"[^"]*"/g)?.includes(etag) ?? false);
}
