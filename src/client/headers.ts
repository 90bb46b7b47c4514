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

/** Throws a RangeError if the option is not the strong entity tag of a plant. */
export function conditionOf({ ifMatch }: ConditionOptions): HeadersOfCall {
  if (ifMatch === undefined) return {};
  if (/^"[!#-~]+"$/.test(ifMatch)) return { 'if-match': ifMatch };
  throw new RangeError(
    /^W\/".*"$/.test(ifMatch)
      ? '`ifMatch` is a weak entity tag (W/"..."), which never matches. Usually a proxy that compresses responses made it weak: switch compression off there.'
      : '`ifMatch` must be the `etag` of a plant, with its quotation marks.',
  );
}

/** The key is a string of a structured field (RFC 9651, section 3.3.3). Throws a RangeError if it is not valid. */
export function keyOf({ idempotencyKey: key }: KeyOptions): HeadersOfCall {
  if (key === undefined) return {};
  // Plain JavaScript can pass anything.
  if (typeof key === 'string' && /^[\x20-\x7E]{1,255}$/.test(key)) {
    return { 'idempotency-key': `"${key.replace(/["\\]/g, '\\$&')}"` };
  }
  throw new RangeError('`idempotencyKey` must be 1 to 255 printable ASCII characters.');
}
