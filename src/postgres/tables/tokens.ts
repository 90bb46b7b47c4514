/**
 * Users and their tokens in PostgreSQL.
 */
import { formatScopes, type Grant } from '../../access/access.ts';
import { recordOf, type TokenRow } from '../../access/identity-rows.ts';
import type {
  CreatedToken,
  FoundNames,
  IdentityStorage,
  NewToken,
  TokenQuery,
  TokenRecord,
  TokenUse,
} from '../../access/identity-storage.ts';
import {
  assertCanRevoke,
  lineBelow,
  maxCountedTokens,
  tokensToDelete,
  type CountedToken,
  type OwnToken,
} from '../../access/own-tokens.ts';
import { Problem } from '../../problem.ts';
import { hashToken, makeToken, rangeOf, tokenId } from '../../access/token.ts';
import { prepared } from '../pool/connection.ts';
import {
  changeGrantsVersion,
  checkAgain,
  Grants,
  identifyAgain,
  lineOf,
  refusalOf,
  reviveUser,
} from './grants.ts';
import type { UserNames } from './names.ts';
import type { BoundStatement } from '../pool/pool.ts';
import { settled } from '../pool/settled.ts';

const selectRecords = `
      SELECT store, hash, scopes, label, created_at, expires_at, revoked_at, last_used_at, user_id, family
      FROM plant_store.tokens`;

type RecordRow = readonly [...TokenRow, user: number, line: string | null];

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
  countOwn: prepared<CountedToken>(
    'count_own_tokens',
    `
      SELECT hash, created_at, expires_at, revoked_at FROM plant_store.tokens
      WHERE store = $1 AND user_id = $2 ORDER BY hash LIMIT ${maxCountedTokens}`,
  ),
  deleteOwn: prepared(
    'delete_own_tokens',
    'DELETE FROM plant_store.tokens WHERE store = $1 AND hash = ANY ($2::bytea[])',
  ),
  recordUses: prepared(
    'record_uses',
    `
      UPDATE plant_store.tokens SET last_used_at = $2
      WHERE store = $1 AND hash = ANY ($3::bytea[]) AND (last_used_at IS NULL OR last_used_at < $2)`,
  ),
};

export class Tokens extends Grants implements IdentityStorage {
  async findNames(name: Pick<NewToken, 'store' | 'user'>): Promise<FoundNames> {
    const store = await this.names.findStore(name.store);
    const found = store === undefined ? undefined : await this.names.findUser(store, name.user);
    if (found === undefined || found.isRemoved) return { store, user: undefined, role: undefined };
    return { store, user: found.user, role: found.role };
  }

  async createToken({ store, user, role, ...token }: NewToken): Promise<CreatedToken> {
    const owner = await this.names.findOrCreateUser(store, user, role ?? 'member');
    const { scopes, label, createdAtMs, expiresAtMs } = token;
    const text = makeToken(owner.store);
    const hash = hashToken(text);
    const columns = [null, formatScopes(scopes), label, createdAtMs, expiresAtMs ?? null];
    const setRole: BoundStatement[] =
      role === undefined ? [] : [[tokenSql.setRole, [owner.store, owner.user, role]]];
    const server = await this.cluster.ofStore(owner.store);
    await server.transact([
      changeGrantsVersion(owner.store),
      reviveUser(owner, role ?? 'member'),
      ...setRole,
      [tokenSql.addToken, [owner.store, hash, owner.user, ...columns]],
    ]);
    return { token: text, id: tokenId(hash, owner.store) };
  }

  async createOwnToken({ caller, tokenId: by }: Grant, token: OwnToken): Promise<void> {
    const { store, user } = caller;
    const { scopes, label, createdAtMs, expiresAtMs } = token;
    const hash = Buffer.from(token.hash);
    const columns = [formatScopes(scopes), label, createdAtMs, expiresAtMs ?? null];
    // The first statement locks the row of the store: what the others read does not change until the commit.
    const first: BoundStatement[] = [
      changeGrantsVersion(store),
      [tokenSql.countOwn, [store, user]],
      ...identifyAgain(caller),
    ];
    const server = await this.cluster.ofStore(store);
    await server.transactInTwo(first, ([, counted = [], found]) => {
      const tokens = counted as unknown as CountedToken[]; // the rows of `countOwn`
      if (tokens.some(([each]) => hash.equals(each))) return []; // an earlier attempt was committed
      const refusal = refusalOf(caller, found);
      if (refusal !== undefined) return refusal;
      const ended = tokensToDelete(tokens, createdAtMs);
      if (ended instanceof Problem) return ended;
      const values = [store, hash, user, lineBelow(lineOf(found), by), ...columns];
      const add: BoundStatement = [tokenSql.addToken, values];
      return ended.length === 0 ? [add] : [[tokenSql.deleteOwn, [store, ended]], add];
    });
  }

  async listTokens(query: TokenQuery): Promise<TokenRecord[]> {
    const rows = await this.#rows(query);
    // Each user once: a user has many tokens, and one read for each token would leave none for other requests.
    const users = new Map<string, Promise<UserNames | undefined>>();
    return Promise.all(
      rows.map(async (row) => {
        const { 0: store, 8: user } = row;
        const key = `${store} ${user}`;
        const described = users.get(key) ?? this.names.describe({ store, user });
        users.set(key, described);
        return toRecord(row, await described);
      }),
    );
  }

  async #rows({ store: name, owner, after, limit }: TokenQuery): Promise<RecordRow[]> {
    const hash = after?.hash ?? noHash;
    if (owner !== undefined) {
      const { store, user } = owner;
      return this.cluster.read(store, tokenSql.listUser, [store, hash, limit, user]);
    }
    if (name === undefined) {
      const server = await this.cluster.anyServer();
      return server.read(tokenSql.listAll, [after?.store ?? 0, hash, limit]);
    }
    const store = await this.names.findStore(name);
    if (store === undefined) return [];
    return this.cluster.read(store, tokenSql.listStore, [store, hash, limit]);
  }

  async revokeToken(id: string, revokedAtMs: number, by?: Grant): Promise<TokenRecord | undefined> {
    const caller = by?.caller;
    if (caller !== undefined) await checkAgain(this.cluster, caller);
    const range = rangeOf(id);
    if (range === undefined) return undefined;
    const { store, first, last } = range;
    const values = [store, first, last];
    const server = await this.cluster.ofStore(store);
    const [before] = await server.read(tokenSql.findById, values);
    if (before === undefined) return undefined;
    const { 8: user, 9: line } = before;
    if (caller !== undefined && (caller.store !== store || caller.user !== user)) return undefined;
    // Before the change, so that nothing fails after it.
    const record = toRecord(before, await this.names.describe({ store, user }));
    if (by !== undefined) assertCanRevoke(by, { ...record, line });
    const revoke: BoundStatement = [tokenSql.revoke, [...values, revokedAtMs]];
    let attempts = 0;
    const [[row] = []] = await server.transactInTwo(
      [changeGrantsVersion(store), ...identifyAgain(caller)],
      ([, identified]) => {
        const canBeDone = by?.tokenId === record.id && attempts++ > 0; // by an earlier attempt
        return (canBeDone ? undefined : refusalOf(caller, identified)) ?? [revoke];
      },
    );
    if (row === undefined) return undefined; // it had expired, and its user has created another
    return { ...record, revokedAtMs: row[0] as number }; // the column of `revoke`
  }

  /** On each server by itself, so that one that does not respond delays no others. */
  async recordUses(uses: readonly TokenUse[]): Promise<void> {
    const together = Map.groupBy(uses, ({ store }) => this.cluster.placeOf(store));
    await settled([...together.values()].map((some) => this.#recordUses(some)));
  }

  /** One statement for each store and minute. It locks tokens in the order of the index, so none deadlock. */
  async #recordUses(uses: readonly TokenUse[]): Promise<void> {
    const together = Map.groupBy(uses, ({ store, usedAtMs }) => `${store} ${usedAtMs}`);
    for (const group of together.values()) {
      const [{ store, usedAtMs } = { store: 0, usedAtMs: 0 }] = group; // it has at least one
      const hashes = group.map(({ hash }) => Buffer.from(hash));
      const server = await this.cluster.ofStore(store);
      await server.write(tokenSql.recordUses, [store, usedAtMs, hashes]);
    }
  }
}

/** Comes before every hash. */
const noHash = Buffer.alloc(0);

function toRecord(
  row: RecordRow,
  { store = '', user = '', role = 'member' }: Partial<UserNames> = {},
): TokenRecord {
  return recordOf(row, { store, user, role });
}
