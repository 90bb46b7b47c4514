import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';

/** How often a header was sent. Node keeps only the first of some headers and joins others. */
export function headerCount({ rawHeaders }: IncomingMessage, lowerCaseName: string): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) count++;
  }
  return count;
}

/**
 * Default headers of every response: it is only for its caller, and browsers must not guess another media type.
 * Documents can be cached, so they override `cache-control`.
 */
export const privateHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** Makes two calls, because reply.headers() is slower, and this runs for every response. */
export function setPrivateHeaders(reply: FastifyReply): FastifyReply {
  return reply
    .header('cache-control', privateHeaders['cache-control'])
    .header('x-content-type-options', privateHeaders['x-content-type-options']);
}

/** The pages need nothing but the files and the API of their own origin, and the identity provider if there is one. */
export const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};
