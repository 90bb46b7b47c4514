import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';

/** How many times a header came. Node keeps the first of some and joins others without a word. */
export function headerCount({ rawHeaders }: IncomingMessage, lowerCaseName: string): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) count++;
  }
  return count;
}

/**
 * On every answer but those to documents (which may be cached): it is for this caller and this moment,
 * and it is what its media type says.
 */
export const privateHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** Two calls, because each answer pays for them and reply.headers() costs more. */
export function setPrivate(reply: FastifyReply): FastifyReply {
  return reply
    .header('cache-control', privateHeaders['cache-control'])
    .header('x-content-type-options', privateHeaders['x-content-type-options']);
}
