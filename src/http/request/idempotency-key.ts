import type { FastifyRequest } from 'fastify';
import { invalidParameter } from '../../problem.ts';
import { headerCount } from '../response/headers.ts';

const maxChars = 255;
/** With quotation marks, and each character escaped. */
export const maxKeyFieldChars = 2 * maxChars + 2;

/** Without lookaround, as in plant.ts: openapi.json has it. */
const quoted = String.raw`"([ !#-\x5B\x5D-~]|\x5C["\x5C]){1,${maxChars}}"`;
const bare = String.raw`[!#-+\x2D-~]{1,${maxChars}}`;
export const keyPattern = `^(${quoted}|${bare})$`;
const keyField = new RegExp(`^[ \\t]*(${quoted}|${bare})[ \\t]*$`);

/**
 * The header `Idempotency-Key`, a string of RFC 9651. Without quotation marks it is the same key, because many clients
 * send it so. Undefined if it is missing.
 */
export function idempotencyKey({ raw, headers }: FastifyRequest): string | undefined {
  const field = headers['idempotency-key'];
  if (field === undefined) return undefined;
  const [, text] = keyField.exec(String(field)) ?? [];
  if (text !== undefined && headerCount(raw, 'idempotency-key') === 1) {
    return text.startsWith('"') ? text.slice(1, -1).replaceAll(/\\(.)/g, '$1') : text;
  }
  throw invalidParameter(
    'Idempotency-Key',
    `Send one "Idempotency-Key" of 1 to ${maxChars} ASCII characters in quotation marks, such as "8e03978e-40d5-43dd-bc93-6894a57f9324".`,
  );
}
