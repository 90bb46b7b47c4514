import { defaultScopes, formatScopes, type Grant, type Identity } from '../../src/access/access.ts';
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
  const columns = [formatScopes(defaultScopes), 'restored', ...times, null, null, '', null];
  await addRows(url, {
    tokens: tokens.map((token) => [store, hashToken(token), user, ...columns]),
  });
}

const grants = new WeakMap<Storage, Map<string, Grant | undefined>>();

/** As a service does it, which passes the last grant of each token. */
export async function identify(storage: Storage, token: string): Promise<Grant | undefined> {
  const known = grants.get(storage) ?? new Map<string, Grant | undefined>();
  grants.set(storage, known);
  const grant = await storage.identity.identify(credentialOf(token), known.get(token));
  known.set(token, grant);
  return grant;
}
