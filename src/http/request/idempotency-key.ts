import type { FastifyRequest } from 'fastify';
import { Problem } from '../../problem.ts';
import { headerCount } from '../response/headers.ts';

const maxChars = 255;

/**
 * The header `Idempotency-Key`, a string of RFC 9651. Without quotation marks it is the same key, because many clients
 * send it so. Undefined if it is missing.
 */
export function idempotencyKey({ raw, headers }: FastifyRequest): string | undefined {
  const field = headers['idempotency-key'];
  if (field === undefined) return undefined;
  const [, quoted, bare] =
    /^[ \t]*(?:"((?:[ !#-[\]-~]|\\["\\])+)"|([!#-+\--~]+))[ \t]*$/.exec(String(field)) ?? [];
  const key = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare;
  if (key !== undefined && key.length <= maxChars && headerCount(raw, 'idempotency-key') === 1) {
    return key;
  }
  throw new Problem(
    'invalid-request',
    `Send one "Idempotency-Key" of 1 to ${maxChars} ASCII characters in quotation marks, such as "8e03978e-40d5-43dd-bc93-6894a57f9324".`,
  );
}
