/**
 * The addresses of requests. An argument of a call is one segment of a path, or is refused: it must not lead to another
 * resource.
 */

export type Path =
  | readonly ['plants' | 'bin' | 'token' | 'tokens' | 'shares']
  | readonly ['plants', number, ('restore' | 'history')?]
  | readonly ['tokens' | 'shares', string];

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
