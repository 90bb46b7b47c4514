/**
 * What the client reads from a successful response, besides a plant.
 */
import type { Reply } from './call.ts';

export function arrayOf<T>({ json, unexpected }: Reply<T[]>): T[] {
  if (Array.isArray(json)) return json;
  throw unexpected('The response is not a list.');
}

/** The id of a new plant. */
export function idOf({ headers, unexpected }: Reply<unknown>): number {
  const [, id] = /\/(\d+)$/.exec(headers.get('location') ?? '') ?? [];
  if (id !== undefined) return Number(id);
  throw unexpected('The plant was created, but Location does not have its id.');
}

/** A header that such a response always has. */
export function headerOf({ headers, unexpected }: Reply<unknown>, name: string): string {
  const value = headers.get(name);
  if (value !== null) return value;
  throw unexpected(`The response has no ${name}. Usually a proxy has removed it.`);
}

/**
 * The address of the next page; undefined after the last one. Only the query of `Link` is used: the service can write
 * its public address there, which can differ from `url`, and the token must not be sent to another address.
 */
export function nextOf({ headers, unexpected }: Reply<unknown>, address: URL): URL | undefined {
  const query = nextQueryOf(headers);
  if (query === undefined) return undefined;
  const next = new URL(address);
  next.search = query || address.search;
  if (next.href !== address.href) return next;
  throw unexpected('Link does not lead to the next page.');
}

/** The query of the next page in `Link`; empty if it has none, and undefined if there is no next page. */
function nextQueryOf(headers: Headers): string | undefined {
  const link = /<[^?#>]*(\?[^#>]*)?[^>]*>\s*;[^,]*\brel="?next\b/.exec(headers.get('link') ?? '');
  return link === null ? undefined : (link[1] ?? '');
}

/** Where the next changes begin. */
export function cursorOf({ headers, unexpected }: Reply<unknown>): string {
  const cursor = new URLSearchParams(nextQueryOf(headers)).get('after');
  if (cursor !== null) return cursor;
  throw unexpected('Link has no cursor of changes. Usually a proxy has removed it.');
}

/** The position in the log of changes that the response has, if any. */
export function positionOf(headers: Headers): number | undefined {
  const position = headers.get('change-position');
  return position === null ? undefined : Number(position);
}
