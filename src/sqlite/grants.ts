/**
 * Who is calling, on SQLite: what a token or a JWT grants, and whether that has changed since it was read.
 */
import {
  maxOwnersInReach,
  type Caller,
  type Claims,
  type Credential,
  type Grant,
  type Identified,
  type ReceivedShare,
  type Role,
} from '../access.ts';
import { Cache } from '../cache.ts';
import { grantOf, hashKey, type TokenTerms } from '../identity-rows.ts';
import { unrevokedCaller } from '../identity-storage.ts';
import { Problem } from '../problem.ts';
import { Statements } from './driver.ts';

const maxCachedGrants = 10_000;

/** The shares in effect of the user with a name. */
export const receivedShares = `
  FROM shares INDEXED BY shares_by_user JOIN users ON users.store = shares.store AND users.user = shares.owner
  WHERE shares.store = :store AND user_name = :user
  ORDER BY since, owner LIMIT ${maxOwnersInReach - 1}`;

const userColumns =
  'users.store, users.user, stores.name, users.name, users.role, users.removed_at';

// The schema enforces the types of rows: its tables are STRICT.
type UserRow = readonly [
  store: number,
  user: number,
  storeName: string,
  userName: string,
  role: Role,
  removedAt: number | null,
];

export class Grants extends Statements {
  readonly #countChanges = this.prepare<[count: number]>('SELECT count FROM grant_changes');
  readonly #findToken = this.prepare<readonly [...UserRow, ...TokenTerms]>(`
    SELECT ${userColumns}, tokens.scopes, tokens.expires_at, tokens.revoked_at, tokens.family
    FROM tokens JOIN stores USING (store) JOIN users USING (store, user) WHERE tokens.hash = ?`);
  readonly #findUser = this.prepare<UserRow>(`
    SELECT ${userColumns} FROM stores JOIN users USING (store)
    WHERE stores.name = ? AND users.name = ?`);
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
    return this.#cache.getOrLoad(hashKey(credential.tokenHash), () => this.#find(credential));
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

  #find(credential: Pick<Credential, 'tokenHash' | 'claims'>): Grant | undefined {
    const { tokenHash, claims } = credential;
    const row = claims === undefined ? this.#findToken.get(tokenHash) : this.#userOf(claims);
    if (row === undefined) return undefined;
    const [store, user, storeName, userName, role, removedAt, ...terms] = row;
    const isManager = (claims?.role ?? role) === 'manager';
    const received = isManager ? [] : this.#findReceived.all({ store, user: userName });
    const version = this.#readVersion();
    const found = { store, user, storeName, userName, role, removedAt, received, version };
    return grantOf(credential, found, terms);
  }

  /** A user who was removed before the JWT was issued does not have it. */
  #userOf({ storeName, userName, issuedAtMs }: Claims): UserRow | undefined {
    const row = this.#findUser.get(storeName, userName);
    const removedAt = row?.[5] ?? Infinity;
    return removedAt < issuedAtMs ? undefined : row;
  }
}
