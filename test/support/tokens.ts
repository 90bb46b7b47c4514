import { defaultScopes, formatScopes, type Identity } from '../../src/access/access.ts';
import type { Archive } from '../../src/copy/archive.ts';
import { credentialOf, hashToken, tokenId } from '../../src/access/token.ts';

/** The id that every list shows for this token. */
export function idOf(token: string): string {
  const { tokenHash, store } = credentialOf(token);
  return tokenId(tokenHash, store);
}

/** Adds a token of a user who exists, as a restored backup does. */
export async function restoreToken(
  archive: Archive,
  { store, user }: Identity,
  token: string,
): Promise<void> {
  const times = [Date.now(), null, null, null];
  const columns = [formatScopes(defaultScopes), 'restored', ...times, null];
  await archive.add('tokens', [[store, hashToken(token), user, ...columns]]);
}
