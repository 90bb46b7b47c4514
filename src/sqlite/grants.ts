/**
 * Who is calling, on SQLite: what a token or a JWT grants, and whether that has changed since it was read.
 */
import {
  callerOf,
  familyOfUser,
  maxOwnersInReach,
  parseScopes,
  type Caller,
  type Claims,
  type Credential,
  type Grant,
  type Identified,
  type Identity,
  type ReceivedShare,
  type Role,
  type Scope,
} from '../access.ts';
import { Cache } from '../cache.ts';
import { unrevokedCaller } from '../identity-storage.ts';
import { familyOf } from '../own-tokens.ts';
import { Problem } from '../problem.ts';
import { tokenId } from '../token.ts';
import { Table } from './table.ts';

const maxCachedGrants = 10_000;

/** The shares in effect of the user with a name. */
export const receivedShares = `
  FROM shares INDEXED BY shares_by_user JOIN users ON users.store = shares.store AND users.user = shares.owner
  WHERE shares.store = :store AND user_name = :user
  ORDER BY since, owner LIMIT ${maxOwnersInReach - 1}`;

// The schema enforces the types of rows: its tables are STRICT.
type TokenRow = [
  store: number,
  user: number,
  storeName: string,
  userName: string,
  role: Role,
  scopes: string,
  expiresAt: number | null,
  revokedAt: number | null,
  line: string | null,
];

export class Grants extends Table {
  readonly #countChanges = this.prepare<[count: number]>('SELECT count FROM grant_changes');
  readonly #findToken = this.prepare<TokenRow>(`
    SELECT tokens.store, tokens.user, stores.name, users.name, users.role, tokens.scopes,
           tokens.expires_at, coalesce(tokens.revoked_at, users.removed_at), tokens.family
    FROM tokens JOIN stores USING (store) JOIN users USING (store, user) WHERE tokens.hash = ?`);
  readonly #findUser = this.prepare<
    [store: number, user: number, role: Role, removedAt: number | null]
  >(`
    SELECT users.store, users.user, users.role, users.removed_at
    FROM stores JOIN users USING (store) WHERE stores.name = :store AND users.name = :user`);
  readonly #findReceived = this.prepare<ReceivedShare>(`SELECT owner, access ${receivedShares}`);

  /** Nobody sees a stale one: each batch of reads calls `refresh` first, in its transaction. */
  readonly #cache = new Cache<Grant>(maxCachedGrants);
  #cachedVersion: number | undefined;
  /** The version in the open transaction of writes. */
  #writtenVersion: number | undefined;

  /** Drops cached grants if any token, user or share has changed. Call it after another connection has written. */
  refresh(): void {
    const version = this.#readVersion();
    if (version !== this.#cachedVersion) this.#cache.clear();
    this.#cachedVersion = version;
  }

  /** Undefined if there is no such token, or if the user of a JWT does not exist at the time of its issue. */
  findCached(credential: Credential): Grant | undefined {
    return this.#cache.getOrLoad(keyOf(credential.tokenHash), () => this.#find(credential));
  }

  /**
   * For writes: undefined if no grant has changed since the caller was identified. Otherwise identifies them again, and
   * throws `invalid-token` if their token was revoked. An operator is no caller.
   */
  callerSince(by: Identified | undefined): Caller | undefined {
    if (by === undefined) return undefined;
    const [version, key, claims] = by;
    this.#writtenVersion ??= this.#readVersion();
    if (version === this.#writtenVersion) return undefined;
    const caller = unrevokedCaller(this.#find({ tokenHash: Buffer.from(key, 'latin1'), claims }));
    if (caller instanceof Problem) throw caller;
    return caller;
  }

  /** Call it at the start of a transaction, and after each write in it that can change grants. */
  clearVersion(): void {
    this.#writtenVersion = undefined;
  }

  #readVersion(): number {
    return this.#countChanges.get()?.[0] ?? 0;
  }

  #find({ tokenHash, claims }: Pick<Credential, 'tokenHash' | 'claims'>): Grant | undefined {
    return claims === undefined
      ? this.#grantOfToken(tokenHash)
      : this.#grantOfClaims(tokenHash, claims);
  }

  #grantOfToken(tokenHash: Uint8Array): Grant | undefined {
    const row = this.#findToken.get(tokenHash);
    if (row === undefined) return undefined;
    const [store, user, storeName, userName, role, scopes, expiresAt, revokedAt, line] = row;
    const id = tokenId(tokenHash, store);
    const granted = { store, user, userName, role, scopes: parseScopes(scopes) };
    return {
      caller: this.#callerOf(granted, tokenHash),
      tokenId: id,
      tokenHash,
      isStored: true,
      family: familyOf(line, id),
      storeName,
      userName,
      role,
      expiresAtMs: expiresAt ?? undefined,
      revokedAtMs: revokedAt ?? undefined,
    };
  }

  #grantOfClaims(tokenHash: Uint8Array, claims: Claims): Grant | undefined {
    const { storeName, userName, scopes, issuedAtMs, expiresAtMs } = claims;
    const row = this.#findUser.get({ store: storeName, user: userName });
    if (row === undefined) return undefined;
    const [store, user, storedRole, removedAtMs] = row;
    if (removedAtMs !== null && removedAtMs < issuedAtMs) return undefined;
    const role = claims.role ?? storedRole;
    return {
      caller: this.#callerOf({ store, user, userName, role, scopes }, tokenHash, claims),
      tokenId: tokenId(tokenHash, undefined),
      tokenHash,
      isStored: false,
      family: familyOfUser({ store, user }),
      storeName,
      userName,
      role,
      expiresAtMs,
      revokedAtMs: removedAtMs ?? undefined,
    };
  }

  #callerOf(
    { store, user, userName, role, scopes }: Granted,
    tokenHash: Uint8Array,
    claims?: Claims,
  ): Caller {
    const received = role === 'manager' ? [] : this.#findReceived.all({ store, user: userName });
    const identified = [this.#readVersion(), keyOf(tokenHash), claims] as const;
    return callerOf({ store, user, identified }, role, scopes, received);
  }
}

interface Granted extends Identity {
  userName: string;
  role: Role;
  scopes: readonly Scope[];
}

/** A hash as latin1 text, which is a key of a Map and of `Identified`. */
function keyOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
}
