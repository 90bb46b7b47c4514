/**
 * Tokens in PostgreSQL, as operators and their users see them.
 */
import { formatScopes, parseScopes, type Identity } from '../access.ts';
import type { FoundNames, NewToken, TokenQuery, TokenRecord } from '../identity-storage.ts';
import { isTokenId, lastHashOf, tokenId } from '../token.ts';
import { prepared } from './connection.ts';
import { changeGrantsVersion, reviveUser, type Grants } from './grants.ts';
import type { Names, UserNames } from './names.ts';
import type { BoundStatement, Pool } from './pool.ts';

const tokenColumns =
  'hash, store, user_id, scopes, label, created_at, expires_at, revoked_at, last_used_at' as const;

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

export const tokenSql = {
  addToken: prepared(
    'add_token',
    `
      INSERT INTO plant_store.tokens
        (hash, store, user_id, family, scopes, label, created_at, expires_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
  ),
  setRole: prepared(
    'set_role',
    'UPDATE plant_store.users SET role = $3 WHERE store = $1 AND id = $2',
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
};

export class Tokens {
  readonly #pool: Pool;
  readonly #names: Names;
  readonly #grants: Grants;

  constructor(pool: Pool, names: Names, grants: Grants) {
    this.#pool = pool;
    this.#names = names;
    this.#grants = grants;
  }

  async findNames({ store, user }: Pick<NewToken, 'store' | 'user'>): Promise<FoundNames> {
    const found = await this.#names.findStore(store);
    if (found === undefined) return { store: undefined, role: undefined };
    const named = await this.#names.findUser(found, user);
    return { store: found, role: named?.isRemoved === false ? named.role : undefined };
  }

  async create({ store, user, role, ...token }: NewToken): Promise<void> {
    const owner = await this.#names.findOrCreateUser(store, user, role ?? 'member');
    const { hash, scopes, label, createdAtMs, expiresAtMs } = token;
    const values = [
      Buffer.from(hash),
      owner.store,
      owner.user,
      null,
      formatScopes(scopes),
      label,
      createdAtMs,
      expiresAtMs ?? null,
    ];
    if (role === undefined) {
      await this.#pool.transact([
        changeGrantsVersion(owner.store),
        reviveUser(owner, 'member'),
        [tokenSql.addToken, values],
      ]);
      return;
    }
    const change: BoundStatement[] = [
      reviveUser(owner, role),
      [tokenSql.setRole, [owner.store, owner.user, role]],
      [tokenSql.addToken, values],
    ];
    await this.#grants.change(owner.store, change, async () => {
      return (await this.#names.describe(owner))?.role === role;
    });
  }

  async list({ store, user, after = '', limit }: TokenQuery): Promise<TokenRecord[]> {
    const range = [lastHashOf(after), limit];
    const rows =
      store === undefined
        ? await this.#pool.read(tokenSql.listAll, range)
        : await this.#listOf(store, user, range);
    // Each user once: a user has many tokens, and one read for each token would leave none for other requests.
    const users = new Map<string, Promise<UserNames | undefined>>();
    return Promise.all(
      rows.map(async (row) => {
        const [, number, owner] = row;
        const key = `${number} ${owner}`;
        const described = users.get(key) ?? this.#names.describe({ store: number, user: owner });
        users.set(key, described);
        return toRecord(row, await described);
      }),
    );
  }

  async #listOf(store: string, user: string | undefined, range: unknown[]): Promise<RecordRow[]> {
    const found = await this.#names.findStore(store);
    if (found === undefined) return [];
    if (user === undefined) return this.#pool.read(tokenSql.listStore, [...range, found]);
    const named = await this.#names.findUser(found, user);
    if (named === undefined) return [];
    return this.#pool.read(tokenSql.listUser, [...range, found, named.user]);
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
    // Before the change, so that nothing fails after it.
    const record = toRecord(before, await this.#names.describe({ store, user }));
    let revokedAt: number | null | undefined;
    await this.#grants.change(store, [[tokenSql.revoke, [...range, revokedAtMs]]], async () => {
      revokedAt = (await find())?.[7]; // the position in tokenColumns
      return revokedAt !== null;
    });
    return { ...record, revokedAtMs: revokedAt ?? undefined };
  }
}

function toRecord(row: RecordRow, described: UserNames | undefined): TokenRecord {
  const [hash, , , scopes, label, createdAtMs, expiresAt, revokedAt, lastUsedAt] = row;
  return {
    id: tokenId(hash),
    store: described?.store ?? '',
    user: described?.user ?? '',
    role: described?.role ?? 'member',
    scopes: parseScopes(scopes),
    label,
    createdAtMs,
    expiresAtMs: expiresAt ?? undefined,
    revokedAtMs: revokedAt ?? undefined,
    lastUsedAtMs: lastUsedAt ?? undefined,
  };
}
