/**
 * What both engines make of their rows of tokens and users.
 */
import {
  callerOf,
  parseScopes,
  userKey,
  type Caller,
  type Credential,
  type Grant,
  type ReceivedShare,
  type Role,
} from './access.ts';
import { familyOf } from './own-tokens.ts';
import { tokenId } from './token.ts';
import { tokenEnded } from '../problem.ts';

/** Like all rows here, with null for a time that does not apply. */
export type UserRow = readonly [
  store: number,
  user: number,
  storeName: string,
  userName: string,
  role: Role,
  removedAt: number | null,
];

/** The columns of a token that a grant depends on. */
export type TokenTerms = readonly [
  scopes: string,
  expiresAt: number | null,
  revokedAt: number | null,
  line: string | null,
];

/**
 * The grant of a credential. `terms` are those of its token, and empty for a JWT, which has claims instead. `received` are
 * the shares in effect, and `version` is that of the grants that were read.
 */
export function grantOf(
  { tokenHash, claims }: Pick<Credential, 'tokenHash' | 'claims'>,
  [store, user, storeName, userName, storedRole, removedAt]: UserRow,
  [scopes = '', expiresAt = null, revokedAt = null, line = null]: TokenTerms | readonly [],
  received: readonly ReceivedShare[],
  version: number,
): Grant {
  const role = claims?.role ?? storedRole;
  const id = tokenId(tokenHash, claims === undefined ? store : undefined);
  const identified = [version, hashKey(tokenHash), user, id, claims] as const;
  const granted = claims?.scopes ?? parseScopes(scopes);
  return {
    caller: callerOf({ store, user, identified }, role, granted, received),
    readAtMs: performance.now(),
    tokenId: id,
    tokenHash,
    isStored: claims === undefined,
    family: claims === undefined ? familyOf(line, id) : userKey({ store, user }),
    storeName,
    userName,
    role,
    expiresAtMs: claims?.expiresAtMs ?? expiresAt ?? undefined,
    revokedAtMs: revokedAt ?? removedAt ?? undefined,
  };
}

/** The caller of a grant. Throws `invalid-token` if its token was revoked, which can also have deleted it. */
export function unrevokedCaller(grant: Grant | undefined): Caller {
  if (grant === undefined || grant.revokedAtMs !== undefined) throw tokenEnded('revoked');
  return grant.caller;
}

/** A hash as latin1 text, which is a key of a Map and of `Identified`. */
function hashKey({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
}
