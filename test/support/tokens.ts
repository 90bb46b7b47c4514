/**
 * Ids of tokens, and tokens as older versions made them: their text does not name their store.
 */
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { defaultScopes, formatScopes, type Identity } from '../../src/access.ts';
import type { Archive } from '../../src/archive.ts';
import { credentialOf, hashToken, tokenId } from '../../src/token.ts';

/** The id that every list shows for this token. */
export function idOf(token: string): string {
  const { tokenHash, store } = credentialOf(token);
  return tokenId(tokenHash, store);
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** A token of 55 characters. */
export function makeOldToken(): string {
  const secret = base62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43);
  return `plant_${secret}${base62(BigInt(crc32(secret)), 6)}`;
}

/** Adds an old token of a user who exists. */
export async function addOldToken(
  archive: Archive,
  { store, user }: Identity,
  token = makeOldToken(),
): Promise<string> {
  const times = [Date.now(), null, null, null];
  const columns = [1, formatScopes(defaultScopes), 'old', ...times, null];
  await archive.add('tokens', [[store, hashToken(token), user, ...columns]]);
  return token;
}

function base62(value: bigint, chars: number): string {
  return chars === 0 ? '' : base62(value / 62n, chars - 1) + alphabet.charAt(Number(value % 62n));
}
