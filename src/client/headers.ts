/**
 * The headers of requests that an option of a call sets. They are checked, because `fetch` refuses other characters as if
 * there were no connection.
 */

export interface ConditionOptions {
  /** The call fails with `precondition-failed` unless the plant still has this entity tag. */
  ifMatch?: string | undefined;
}

export interface KeyOptions {
  /** Of 1 to 255 ASCII characters, such as a UUID: a new one for each plant. Calls with the same key create one plant. */
  idempotencyKey?: string | undefined;
}

export type HeadersOfCall = Readonly<Record<string, string>>;

/** Throws a RangeError if the option is not valid. */
export function conditionOf({ ifMatch }: ConditionOptions): HeadersOfCall {
  return ifMatch === undefined ? {} : { 'if-match': printableAscii('ifMatch', ifMatch) };
}

/** The key is a string of a structured field (RFC 9651, section 3.3.3). Throws a RangeError if it is not valid. */
export function keyOf({ idempotencyKey: key }: KeyOptions): HeadersOfCall {
  if (key === undefined) return {};
  const escaped = printableAscii('idempotencyKey', key).replace(/["\\]/g, '\\$&');
  return { 'idempotency-key': `"${escaped}"` };
}

/** Plain JavaScript can pass anything. */
function printableAscii(name: string, text: unknown): string {
  if (typeof text === 'string' && /^[\x20-\x7E]+$/.test(text)) return text;
  throw new RangeError(`\`${name}\` must have printable ASCII characters, and at least one.`);
}
