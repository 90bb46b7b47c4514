/**
 * Grants and records of tokens, from what either engine has read.
 */
import {
  callerOf,
  familyOfUser,
  parseScopes,
  type Claims,
  type Grant,
  type Identity,
  type ReceivedShare,
  type Role,
  type Scope,
} from './access.ts';
import type { TokenPosition, TokenRecord } from './identity-storage.ts';
import { familyOf } from './own-tokens.ts';
import { tokenId } from './token.ts';

/** A user whose grant is read. Null stands for times that do not apply, as in rows. */
export interface GrantedUser extends Identity {
  storeName: string;
  userName: string;
  role: Role;
  removedAtMs: number | null;
  /** The shares in effect. */
  received: readonly ReceivedShare[];
  /** The version of the grants that were read (`Identified`). */
  version: number;
}

/** Columns of the row of a token. */
export type TokenTerms = readonly [
  scopes: string,
  expiresAt: number | null,
  revokedAt: number | null,
  line: string | null,
];

export function grantOfToken(
  tokenHash: Uint8Array,
  user: GrantedUser,
  [scopes, expiresAt, revokedAt, line]: TokenTerms,
): Grant {
  const id = tokenId(tokenHash, user.store);
  return {
    ...partOfUser(tokenHash, user, user.role, undefined, parseScopes(scopes)),
    tokenId: id,
    isStored: true,
    family: familyOf(line, id),
    expiresAtMs: expiresAt ?? undefined,
    revokedAtMs: revokedAt ?? user.removedAtMs ?? undefined,
  };
}

export function grantOfClaims(tokenHash: Uint8Array, user: GrantedUser, claims: Claims): Grant {
  return {
    ...partOfUser(tokenHash, user, claims.role ?? user.role, claims, claims.scopes),
    tokenId: tokenId(tokenHash, undefined),
    isStored: false,
    family: familyOfUser(user),
    expiresAtMs: claims.expiresAtMs,
    revokedAtMs: user.removedAtMs ?? undefined,
  };
}

function partOfUser(
  tokenHash: Uint8Array,
  { store, user, storeName, userName, received, version }: GrantedUser,
  role: Role,
  claims: Claims | undefined,
  scopes: readonly Scope[],
) {
  const { buffer, byteOffset, byteLength } = tokenHash;
  const key = Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
  const identified = [version, key, claims] as const;
  const caller = callerOf({ store, user, identified }, role, scopes, received);
  return { caller, tokenHash, storeName, userName, role };
}

/** Columns of the row of a token, without those that find it. */
export type TokenColumns = readonly [
  scopes: string,
  label: string,
  createdAt: number,
  expiresAt: number | null,
  revokedAt: number | null,
  lastUsedAt: number | null,
];

export function recordOf(
  position: TokenPosition,
  owner: Pick<TokenRecord, 'store' | 'user' | 'role'>,
  [scopes, label, createdAtMs, expiresAt, revokedAt, lastUsedAt]: TokenColumns,
): TokenRecord {
  return {
    id: tokenId(position.hash, position.store),
    position,
    ...owner,
    scopes: parseScopes(scopes),
    label,
    createdAtMs,
    expiresAtMs: expiresAt ?? undefined,
    revokedAtMs: revokedAt ?? undefined,
    lastUsedAtMs: lastUsedAt ?? undefined,
  };
}
