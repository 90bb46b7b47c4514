/**
 * Stores, users and tokens in PostgreSQL. Every statement can be repeated: repeating `next_user` only
 * skips a user number.
 */
import { randomInt } from 'node:crypto';
import {
  callerOf,
  maxOwnersInReach,
  parseScopes,
  formatScopes,
  type Claims,
  type Credential,
  type Grant,
  type Identity,
  type ReceivedShare,
  type Role,
  type Scope,
} from '../access.ts';
import type { FoundNames, NewToken, TokenQuery, TokenRecord } from '../identity-storage.ts';
import { defect, outcomeUnknown } from '../problem.ts';
import { isTokenId, lastHashOf, tokenId } from '../token.ts';
import { prepared } from './connection.ts';
import type { BoundStatement, Pool } from './pool.ts';
import type { Freshness } from './freshness.ts';

const tokenColumns =
  'hash, store, user_id, scopes, label, created_at, expires_at, revoked_at, last_used_at' as const;

type TokenRow = readonly [
  store: number,
  user: number,
  scopes: string,
  expiresAt: number | null,
  revokedAt: number | null,
];
type RecordRow = readonly [
  hash: Buffer,
  store: number,
  user: number,
  scopes: string,
  label: string,
  createdAt: number,
  expiresAt: number | null,
  revokedAt: number | null,
  lastUsedAt: number | null,
];

type UserRow = readonly [store: string, user: string, role: Role, removedAt: number | null];

export const tokenSql = {
  findToken: prepared<TokenRow>(
    'find_token',
    `
      SELECT store, user_id, scopes, expires_at, revoked_at
      FROM plant_store.tokens WHERE hash = $1`,
  ),
  findStore: prepared<readonly [store: number]>(
    'find_store',
    'SELECT store FROM plant_store.store_names WHERE name = $1',
  ),
  findUser: prepared<readonly [id: number, role: Role, isRemoved: boolean]>(
    'find_user',
    `
      SELECT id, role, removed_at IS NOT NULL FROM plant_store.users
      WHERE store = $1 AND name = $2`,
  ),
  nextUser: prepared<readonly [lastUser: number]>(
    'next_user',
    `
      UPDATE plant_store.stores SET last_user = last_user + 1 WHERE store = $1
      RETURNING last_user`,
  ),
  addStore: prepared(
    'add_store',
    `
      INSERT INTO plant_store.stores (store, name) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
  ),
  addStoreName: prepared(
    'name_store',
    `
      INSERT INTO plant_store.store_names (name, store) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
  ),
  findStoreName: prepared<readonly [name: string]>(
    'name_of_store',
    'SELECT name FROM plant_store.stores WHERE store = $1',
  ),
  addUser: prepared(
    'add_user',
    `
      INSERT INTO plant_store.users (store, id, name, role) VALUES ($1, $2, $3, $4)
      ON CONFLICT DO NOTHING`,
  ),
  // A user who was removed and gets a token again has nothing of the former one.
  reviveUser: prepared(
    'revive_user',
    `
      UPDATE plant_store.users SET removed_at = NULL, role = $3
      WHERE store = $1 AND id = $2 AND removed_at IS NOT NULL`,
  ),
  setRole: prepared(
    'set_role',
    'UPDATE plant_store.users SET role = $3 WHERE store = $1 AND id = $2',
  ),
  addToken: prepared(
    'add_token',
    `
      INSERT INTO plant_store.tokens (hash, store, user_id, scopes, label, created_at, expires_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
  ),
  findById: prepared<RecordRow>(
    'find_by_id',
    `
      SELECT ${tokenColumns} FROM plant_store.tokens WHERE hash BETWEEN $1 AND $2`,
  ),
  revoke: prepared(
    'revoke',
    `
      UPDATE plant_store.tokens SET revoked_at = $3
      WHERE hash BETWEEN $1 AND $2 AND revoked_at IS NULL`,
  ),
  changeGrantsVersion: prepared(
    'change_grants_version',
    'UPDATE plant_store.stores SET grants = $2 WHERE store = $1',
  ),
  listAll: prepared<RecordRow>(
    'list_all',
    `
      SELECT ${tokenColumns} FROM plant_store.tokens WHERE hash > $1 ORDER BY hash LIMIT $2`,
  ),
  listStore: prepared<RecordRow>(
    'list_store',
    `
      SELECT ${tokenColumns} FROM plant_store.tokens
      WHERE store = $3 AND hash > $1 ORDER BY hash LIMIT $2`,
  ),
  listUser: prepared<RecordRow>(
    'list_user',
    `
      SELECT ${tokenColumns} FROM plant_store.tokens
      WHERE store = $3 AND user_id = $4 AND hash > $1 ORDER BY hash LIMIT $2`,
  ),
  receivedShares: prepared<ReceivedShare>(
    'shares_in_effect',
    `
      SELECT received.owner, received.access
      FROM plant_store.users CROSS JOIN LATERAL (
        SELECT owner, access FROM plant_store.shares
        WHERE store = $1 AND user_name = users.name
        ORDER BY since, owner LIMIT ${maxOwnersInReach - 1}
      ) AS received
      WHERE users.store = $1 AND users.id = $2`,
  ),
  describeUser: prepared<UserRow>(
    'describe_user',
    `
      SELECT stores.name, users.name, users.role, users.removed_at
      FROM plant_store.stores JOIN plant_store.users ON users.store = stores.store
      WHERE stores.store = $1 AND users.store = $1 AND users.id = $2`,
  ),
};

/** What a token grants its user. Without a role, the one of the user counts. */
interface Terms extends Pick<Grant, 'isStored' | 'expiresAtMs' | 'revokedAtMs'> {
  scopes: readonly Scope[];
  role: Role | undefined;
}

function termsOf({ scopes, role, expiresAtMs }: Claims): Terms {
  return { isStored: false, scopes, role, expiresAtMs, revokedAtMs: undefined };
}

/** Store numbers are random, because a distributed engine has no global counter. */
const maxStoreNumber = 2 ** 48 - 1; // the largest range of randomInt

export function changeGrantsVersion(store: number): BoundStatement {
  return [tokenSql.changeGrantsVersion, [store, randomInt(maxStoreNumber)]];
}

export class Tokens {
  readonly #pool: Pool;
  readonly #freshness: Freshness;

  constructor(pool: Pool, freshness: Freshness) {
    this.#pool = pool;
    this.#freshness = freshness;
  }

  async findNames({ store, user }: Pick<NewToken, 'store' | 'user'>): Promise<FoundNames> {
    const [found] = await this.#pool.read(tokenSql.findStore, [store]);
    if (found === undefined) return { store: undefined, role: undefined };
    const [row] = await this.#pool.read(tokenSql.findUser, [found[0], user]);
    const [, role, isRemoved = true] = row ?? [];
    return { store: found[0], role: isRemoved ? undefined : role };
  }

  async create({ store, user, role, ...token }: NewToken): Promise<void> {
    const storeNumber = await this.#findOrCreateStore(store);
    const userNumber = await this.#findOrCreateUser(storeNumber, user, role ?? 'member');
    const { hash, scopes, label, createdAtMs, expiresAtMs } = token;
    const values = [
      Buffer.from(hash),
      storeNumber,
      userNumber,
      formatScopes(scopes),
      label,
      createdAtMs,
      expiresAtMs ?? null,
    ];
    if (role === undefined) {
      await this.#pool.transact([
        changeGrantsVersion(storeNumber),
        [tokenSql.reviveUser, [storeNumber, userNumber, 'member']],
        [tokenSql.addToken, values],
      ]);
      return;
    }
    const change: BoundStatement[] = [
      [tokenSql.reviveUser, [storeNumber, userNumber, role]],
      [tokenSql.setRole, [storeNumber, userNumber, role]],
      [tokenSql.addToken, values],
    ];
    await this.changeGrants(storeNumber, change, async () => {
      const [row] = await this.#pool.read(tokenSql.describeUser, [storeNumber, userNumber]);
      return row?.[2] === role;
    });
  }

  async identify({ tokenHash, claims }: Credential): Promise<Grant | undefined> {
    const bytes = Buffer.from(tokenHash);
    const key = bytes.toString('latin1');
    const cached = this.#freshness.getGrant(key);
    if (cached !== undefined) {
      const versions = await this.#freshness.refresh(cached.grant.caller.store);
      if (versions?.grants === cached.version) return cached.grant;
    }
    const found = await (claims === undefined
      ? this.#findUserOfToken(bytes)
      : this.#findOrCreateUserOf(claims));
    if (found === undefined) return undefined;
    const { store, user } = found;
    // Read the token again after the versions, so that it is at least as new as they are.
    const versions = await this.#freshness.refresh(store);
    const [terms, [userRow], received] = await Promise.all([
      claims === undefined ? this.#findTerms(bytes) : termsOf(claims),
      this.#pool.read(tokenSql.describeUser, [store, user]),
      this.#pool.read(tokenSql.receivedShares, [store, user]),
    ]);
    if (terms === undefined || userRow === undefined) return undefined;
    const [storeName, userName, storedRole, removedAtMs] = userRow;
    if (claims !== undefined && removedAtMs !== null && removedAtMs < claims.issuedAtMs) {
      await this.#revive({ store, user });
      return this.identify({ tokenHash, claims });
    }
    const { isStored, scopes, role = storedRole, expiresAtMs } = terms;
    const revokedAtMs = terms.revokedAtMs ?? removedAtMs ?? undefined;
    const grant = {
      caller: callerOf({ store, user }, role, scopes, received),
      tokenId: tokenId(tokenHash),
      tokenHash,
      isStored,
      storeName,
      userName,
      role,
      expiresAtMs,
      revokedAtMs,
    };
    if (versions !== undefined) this.#freshness.setGrant(key, grant, versions.grants);
    return grant;
  }

  async #findUserOfToken(hash: Buffer): Promise<Identity | undefined> {
    const [row] = await this.#pool.read(tokenSql.findToken, [hash]);
    return row && { store: row[0], user: row[1] };
  }

  async #findOrCreateUserOf({ storeName, userName }: Claims): Promise<Identity> {
    const [found] = await this.#pool.read(tokenSql.findStore, [storeName]);
    const store = found?.[0] ?? (await this.#findOrCreateStore(storeName));
    return { store, user: await this.#findOrCreateUser(store, userName, 'member') };
  }

  /** The user was removed before the token was issued. */
  async #revive({ store, user }: Identity): Promise<void> {
    await this.#pool.transact([
      changeGrantsVersion(store),
      [tokenSql.reviveUser, [store, user, 'member']],
    ]);
  }

  async #findTerms(hash: Buffer): Promise<Terms | undefined> {
    const [row] = await this.#pool.read(tokenSql.findToken, [hash]);
    if (row === undefined) return undefined;
    const [, , scopes, expiresAt, revokedAt] = row;
    return {
      isStored: true,
      scopes: parseScopes(scopes),
      role: undefined,
      expiresAtMs: expiresAt ?? undefined,
      revokedAtMs: revokedAt ?? undefined,
    };
  }

  async list({ store, user, after = '', limit }: TokenQuery): Promise<TokenRecord[]> {
    const range = [lastHashOf(after), limit];
    const rows =
      store === undefined
        ? await this.#pool.read(tokenSql.listAll, range)
        : await this.#listOf(store, user, range);
    return Promise.all(rows.map((row) => this.#toRecord(row)));
  }

  async #listOf(store: string, user: string | undefined, range: unknown[]): Promise<RecordRow[]> {
    const [found] = await this.#pool.read(tokenSql.findStore, [store]);
    if (found === undefined) return [];
    if (user === undefined) return this.#pool.read(tokenSql.listStore, [...range, ...found]);
    const [foundUser] = await this.#pool.read(tokenSql.findUser, [...found, user]);
    if (foundUser === undefined) return [];
    return this.#pool.read(tokenSql.listUser, [...range, ...found, foundUser[0]]);
  }

  /** If `owner` is given, revokes only a token of this user. */
  async revoke(
    id: string,
    revokedAtMs: number,
    owner: Identity | undefined,
  ): Promise<TokenRecord | undefined> {
    if (!isTokenId(id)) return undefined;
    const range = [Buffer.from(id, 'hex'), lastHashOf(id)];
    const find = async () => {
      const [row] = await this.#pool.read(tokenSql.findById, range);
      return row;
    };
    const before = await find();
    if (before === undefined) return undefined;
    const [, store, user] = before;
    if (owner !== undefined && (owner.store !== store || owner.user !== user)) return undefined;
    const record = await this.#toRecord(before); // before the change, so that nothing fails after it
    let revokedAt: number | null | undefined;
    await this.changeGrants(store, [[tokenSql.revoke, [...range, revokedAtMs]]], async () => {
      revokedAt = (await find())?.[7]; // the position in tokenColumns
      return revokedAt !== null;
    });
    return { ...record, revokedAtMs: revokedAt ?? undefined };
  }

  /**
   * Changes grants and their version in one transaction. The version is first, because it locks the row of the store:
   * a token is never created from one that is being revoked (own-tokens.ts). On distributed engines, the new version
   * can become visible before the change. So once the change is visible, the version changes again.
   */
  async changeGrants(
    store: number,
    change: readonly BoundStatement[],
    isVisible: () => Promise<boolean>,
  ): Promise<void> {
    await this.#pool.transact([changeGrantsVersion(store), ...change]);
    try {
      if (!(await isVisible())) throw new Error('the transaction is not visible on all nodes yet');
      await this.#pool.write(...changeGrantsVersion(store));
    } catch (error) {
      throw outcomeUnknown(error);
    }
  }

  /**
   * Returns the number of the store with this name. The row of the name is added first, and decides between two
   * callers. If the first one is interrupted, the next call adds the row of the store.
   */
  async #findOrCreateStore(name: string): Promise<number> {
    const find = async () => {
      const [row] = await this.#pool.read(tokenSql.findStore, [name]);
      return row?.[0];
    };
    let store = await find();
    if (store === undefined) {
      await this.#pool.write(tokenSql.addStoreName, [name, await this.#drawStoreNumber()]);
      store = await find();
    }
    if (store === undefined) throw defect(new Error(`no store is called ${name}`));
    await this.#pool.write(tokenSql.addStore, [store, name]);
    const [row] = await this.#pool.read(tokenSql.findStoreName, [store]);
    // Two callers drew the same number concurrently: the second one must not get access to the store of the first.
    if (row?.[0] !== name) throw defect(new Error(`the store ${store} is not called ${name}`));
    return store;
  }

  async #drawStoreNumber(): Promise<number> {
    for (;;) {
      const drawn = randomInt(1, maxStoreNumber);
      const taken = await this.#pool.read(tokenSql.findStoreName, [drawn]);
      if (taken.length === 0) return drawn;
    }
  }

  async #findOrCreateUser(store: number, name: string, role: Role): Promise<number> {
    const find = async () => {
      const [row] = await this.#pool.read(tokenSql.findUser, [store, name]);
      return row?.[0];
    };
    const existing = await find();
    if (existing !== undefined) return existing;
    const [row] = await this.#pool.write(tokenSql.nextUser, [store]);
    await this.#pool.write(tokenSql.addUser, [store, row?.[0], name, role]);
    const added = await find();
    if (added === undefined) throw defect(new Error(`no user is called ${name}`));
    return added;
  }

  async #toRecord(row: RecordRow): Promise<TokenRecord> {
    const [hash, store, user, scopes, label, createdAtMs, expiresAt, revokedAt, lastUsedAt] = row;
    const [described] = await this.#pool.read(tokenSql.describeUser, [store, user]);
    const [storeName = '', userName = '', role = 'member'] = described ?? [];
    return {
      id: tokenId(hash),
      store: storeName,
      user: userName,
      role,
      scopes: parseScopes(scopes),
      label,
      createdAtMs,
      expiresAtMs: expiresAt ?? undefined,
      revokedAtMs: revokedAt ?? undefined,
      lastUsedAtMs: lastUsedAt ?? undefined,
    };
  }
}
