import type { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

/**
 * Answers with text that is JSON already. Fastify would add a charset to the media type of a string
 * (and not to that of a stream), which JSON does not define (RFC 8259, section 11).
 */
export function sendText(
  reply: FastifyReply,
  mediaType: string,
  body: string | Readable,
): FastifyReply {
  return reply.header('content-type', mediaType).serializer(asItIs).send(body);
}

const asItIs = (body: unknown): string => String(body);
