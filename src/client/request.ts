/**
 * The addresses and the headers of requests. An argument of a call is one segment of a path, or is refused: it must not
 * lead to another resource. Headers are checked, because `fetch` refuses other characters as if there were no connection.
 */

export type Path =
  | readonly ['plants' | 'changes' | 'bin' | 'token' | 'tokens' | 'shares' | 'team-share' | 'users']
  | readonly ['restore']
  | readonly ['plants', number, ('restore' | 'history')?]
  | readonly ['tokens' | 'shares', string]
  | readonly ['users', string, ('tokens' | 'access')?];

export type Query = Record<string, string | number | readonly string[] | undefined>;

/** Throws a RangeError if an id or a name is not valid. */
export function addressOf(base: URL, path: Path, query: Query = {}): URL {
  const [collection, ...members] = path;
  const segmentOf = collection === 'plants' ? idSegment : nameSegment;
  const segments = members.map((member, at) => (at === 0 ? segmentOf(member) : member));
  const address = new URL([collection, ...segments].join('/'), base);
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    // An empty list is sent too, so that the service refuses it.
    const values = Array.isArray(value) && value.length > 0 ? value : [value];
    for (const each of values) address.searchParams.append(name, String(each));
  }
  return address;
}

/** Whether only programs on this computer can use an address. A name can begin like one, as in 127.0.0.1.example. */
export function isLoopback({ hostname }: URL): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
}

// Plain JavaScript can pass anything.

function idSegment(id: unknown): string {
  if (Number.isSafeInteger(id) && Number(id) >= 1) return String(id);
  throw new RangeError(`An id must be an integer from 1 to ${Number.MAX_SAFE_INTEGER}.`);
}

function nameSegment(name: unknown): string {
  // Every URL parser removes segments of dots, even if they are escaped, and some proxies decode %2F before they do so.
  // No URL contains lone surrogates.
  if (typeof name === 'string' && !/^$|(?:^|[/\\])\.\.?(?:[/\\]|$)|\p{Surrogate}/u.test(name)) {
    return encodeURIComponent(name);
  }
  throw new RangeError(`No URL can contain the name ${JSON.stringify(name)}.`);
}

export interface ConditionOptions {
  /** The call fails with `precondition-failed` unless the plant still has this entity tag. */
  ifMatch?: string | undefined;
}

export interface KeyOptions {
  /** Of 1 to 255 ASCII characters, such as a UUID: a new one for each plant or token. Calls with the same key create one. */
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
