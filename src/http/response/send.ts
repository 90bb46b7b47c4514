import type { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

/**
 * Sends text that is already serialized. Fastify would add a charset to the media type of a string (but not of a
 * stream), and JSON defines none (RFC 8259, section 11).
 */
export function sendText(
  reply: FastifyReply,
  mediaType: string,
  body: string | Readable,
): FastifyReply {
  return reply.header('content-type', mediaType).serializer(asText).send(body);
}

export function sendJson(reply: FastifyReply, json: string | Readable): FastifyReply {
  return sendText(reply, 'application/json', json);
}

const asText = (body: unknown): string => String(body);
