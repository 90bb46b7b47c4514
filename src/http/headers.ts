import type { IncomingMessage } from 'node:http';

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
