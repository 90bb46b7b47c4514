import {
  defaultScopes,
  formatScopes,
  type Credential,
  type Grant,
  type Identity,
} from '../../src/access/access.ts';
import { credentialOf, hashToken, tokenId } from '../../src/access/token.ts';
import type { Storage } from '../../src/storage.ts';
import { addRows } from './rows.ts';

/** The id that every list shows for this token. */
export function idOf(token: string): string {
  const { tokenHash, store } = credentialOf(token);
  return tokenId(tokenHash, store);
}

/** Adds tokens of a user who exists, as a restored backup does. */
export async function restoreTokens(
  url: string,
  { store, user }: Identity,
  tokens: readonly string[],
): Promise<void> {
  const times = [Date.now(), null, null, null];
  const columns = [formatScopes(defaultScopes), 'restored', ...times, null];
  await addRows(url, {
    tokens: tokens.map((token) => [store, hashToken(token), user, ...columns]),
  });
}

const credentials = new WeakMap<Storage, Map<string, Credential>>();

/** As a service does it, which keeps each credential: the storage caches the grant in it. */
export function identify(storage: Storage, token: string): Promise<Grant | undefined> {
  const known = credentials.get(storage) ?? new Map<string, Credential>();
  credentials.set(storage, known);
  const credential = known.get(token) ?? credentialOf(token);
  known.set(token, credential);
  return storage.identity.identify(credential);
}
