/**
 * Tokens in PostgreSQL, as operators and their users see them.
 */
import { formatScopes, parseScopes } from '../access.ts';
import type {
  CreatedToken,
  FoundNames,
  NewToken,
  TokenQuery,
  TokenRecord,
} from '../identity-storage.ts';
import { canRevoke, type Revoker } from '../own-tokens.ts';
import { cannotRevoke } from '../problem.ts';
import { hashToken, makeToken, rangeOf, tokenId } from '../token.ts';
import { prepared } from './connection.ts';
import { changeGrantsVersion, checkAgain, identifyAgain, refusalOf, reviveUser } from './grants.ts';
import type { Names, UserNames } from './names.ts';
import type { Cluster } from './cluster.ts';
import type { BoundStatement, Pool } from './pool.ts';

const selectRecords = `
      SELECT store, hash, user_id, scopes, label, created_at, expires_at, revoked_at, last_used_at, family
      FROM plant_store.tokens`;

type RecordRow = readonly [
  store: number,
  hash: Buffer,
  user: number,
  scopes: string,
  label: string,
  createdAt: number,
  expiresAt: number | null,
  revokedAt: number | null,
  lastUsedAt: number | null,
  line: string | null,
];

/** The tokens of an id in a store. */
const withId = 'store = $1 AND hash BETWEEN $2 AND $3';

export const tokenSql = {
  addToken: prepared(
    'add_token',
    `
      INSERT INTO plant_store.tokens
        (store, hash, user_id, family, scopes, label, created_at, expires_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
  ),
  setRole: prepared(
    'set_role',
    'UPDATE plant_store.users SET role = $3 WHERE store = $1 AND id = $2',
  ),
  findById: prepared<RecordRow>('find_by_id', `${selectRecords} WHERE ${withId}`),
  revoke: prepared(
    'revoke',
    `
      UPDATE plant_store.tokens SET revoked_at = coalesce(revoked_at, $4)
      WHERE ${withId}
      RETURNING revoked_at`,
  ),
  listAll: prepared<RecordRow>(
    'list_tokens',
    `${selectRecords} WHERE (store, hash) > ($1, $2) ORDER BY store, hash LIMIT $3`,
  ),
  listStore: prepared<RecordRow>(
    'list_tokens_of_store',
    `${selectRecords} WHERE store = $1 AND hash > $2 ORDER BY hash LIMIT $3`,
  ),
  listUser: prepared<RecordRow>(
    'list_tokens_of_user',
    `${selectRecords} WHERE store = $1 AND user_id = $4 AND hash > $2 ORDER BY hash LIMIT $3`,
  ),
};

export class Tokens {
  readonly #cluster: Cluster;
  readonly #names: Names;

  constructor(cluster: Cluster, names: Names) {
    this.#cluster = cluster;
    this.#names = names;
  }

  async findNames(name: Pick<NewToken, 'store' | 'user'>): Promise<FoundNames> {
    const store = await this.#names.findStore(name.store);
    const found = store === undefined ? undefined : await this.#names.findUser(store, name.user);
    if (found === undefined || found.isRemoved) return { store, user: undefined, role: undefined };
    return { store, user: found.user, role: found.role };
  }

  async create({ store, user, role, ...token }: NewToken): Promise<CreatedToken> {
    const owner = await this.#names.findOrCreateUser(store, user, role ?? 'member');
    const { scopes, label, createdAtMs, expiresAtMs } = token;
    const text = makeToken(owner.store);
    const hash = hashToken(text);
    const columns = [null, formatScopes(scopes), label, createdAtMs, expiresAtMs ?? null];
    const setRole: BoundStatement[] =
      role === undefined ? [] : [[tokenSql.setRole, [owner.store, owner.user, role]]];
    await this.#cluster
      .ofStore(owner.store)
      .transact([
        changeGrantsVersion(owner.store),
        reviveUser(owner, role ?? 'member'),
        ...setRole,
        [tokenSql.addToken, [owner.store, hash, owner.user, ...columns]],
      ]);
    return { token: text, id: tokenId(hash, owner.store) };
  }

  async list(query: TokenQuery): Promise<TokenRecord[]> {
    const rows = await this.#rows(query);
    // Each user once: a user has many tokens, and one read for each token would leave none for other requests.
    const users = new Map<string, Promise<UserNames | undefined>>();
    return Promise.all(
      rows.map(async (row) => {
        const [store, , user] = row;
        const key = `${store} ${user}`;
        const described = users.get(key) ?? this.#names.describe({ store, user });
        users.set(key, described);
        return toRecord(row, await described);
      }),
    );
  }

  async #rows({ store: name, owner, after, limit }: TokenQuery): Promise<RecordRow[]> {
    const hash = after?.hash ?? noHash;
    if (owner !== undefined) {
      const { store, user } = owner;
      return this.#cluster.ofStore(store).read(tokenSql.listUser, [store, hash, limit, user]);
    }
    if (name === undefined)
      return this.#cluster.any.read(tokenSql.listAll, [after?.store ?? 0, hash, limit]);
    const store = await this.#names.findStore(name);
    if (store === undefined) return [];
    return this.#cluster.ofStore(store).read(tokenSql.listStore, [store, hash, limit]);
  }

  /** The server that has the token with this id. */
  serverOf(id: string): Pool {
    const store = rangeOf(id)?.store;
    return store === undefined ? this.#cluster.any : this.#cluster.ofStore(store);
  }

  /** If `by` is given, revokes only a token of the same user. */
  async revoke(
    id: string,
    revokedAtMs: number,
    by: Revoker | undefined,
  ): Promise<TokenRecord | undefined> {
    if (by !== undefined) await checkAgain(this.#cluster, by);
    const range = rangeOf(id);
    if (range === undefined) return undefined;
    const { store, first, last } = range;
    const values = [store, first, last];
    const server = this.#cluster.ofStore(store);
    const [before] = await server.read(tokenSql.findById, values);
    if (before === undefined) return undefined;
    const [, , user] = before;
    if (by !== undefined && (by.store !== store || by.user !== user)) return undefined;
    // Before the change, so that nothing fails after it.
    const record = toRecord(before, await this.#names.describe({ store, user }));
    if (by !== undefined && !canRevoke(by, { ...record, line: before[9] })) throw cannotRevoke();
    const revoke: BoundStatement = [tokenSql.revoke, [...values, revokedAtMs]];
    let attempts = 0;
    const [[row] = []] = await server.transactInTwo(
      [changeGrantsVersion(store), ...identifyAgain(by)],
      ([, identified]) => {
        const canBeDone = by?.id === record.id && attempts++ > 0; // by an earlier attempt
        return (canBeDone ? undefined : refusalOf(by, identified)) ?? [revoke];
      },
    );
    if (row === undefined) return undefined; // it had expired, and its user has created another
    return { ...record, revokedAtMs: row[0] as number }; // the column of `revoke`
  }
}

/** Comes before every hash. */
const noHash = Buffer.alloc(0);

function toRecord(row: RecordRow, described: UserNames | undefined): TokenRecord {
  const [store, hash, , scopes, label, createdAtMs, ...times] = row;
  const [expiresAt, revokedAt, lastUsedAt] = times;
  return {
    id: tokenId(hash, store),
    position: { store, hash },
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
