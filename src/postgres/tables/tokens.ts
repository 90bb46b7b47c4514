/**
 * Users and their tokens in PostgreSQL.
 */
import { formatScopes, type Grant, type Role } from '../../access/access.ts';
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
import type { LogEntry } from '../../log/change-log.ts';
import { Problem } from '../../problem.ts';
import { hashToken, makeToken, rangeOf, tokenId } from '../../access/token.ts';
import { sql } from '../pool/connection.ts';
import {
  changeGrantsVersion,
  Grants,
  identifyAgain,
  lineOf,
  refusalOf,
  reviveUser,
} from './grants.ts';
import { type AppendToLog, lockVersion } from './log.ts';
import type { Servers } from '../servers.ts';
import type { GrantsVersions } from './grants-version.ts';
import type { Names } from './names.ts';
import type { BoundStatement } from '../pool/pool.ts';
import { settled } from '../errors.ts';

const selectRecords = `
      SELECT tokens.store, hash, scopes, label, created_at, expires_at, revoked_at, last_used_at,
             stores.name, users.name, users.role, users.id, family
      FROM plant_store.tokens
      JOIN plant_store.stores ON stores.store = tokens.store
      JOIN plant_store.users ON users.store = tokens.store AND users.id = tokens.user_id`;
const ofStore = 'tokens.store = $1 AND stores.store = $1 AND users.store = $1';

type RecordRow = readonly [
  ...TokenRow,
  store: string,
  user: string,
  role: Role,
  userId: number,
  line: string | null,
];

export const tokenSql = {
  addToken: sql`
    INSERT INTO plant_store.tokens
      (store, hash, user_id, family, scopes, label, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
  findRole: sql<readonly [role: Role]>`
    SELECT role FROM plant_store.users WHERE store = $1 AND id = $2 AND removed_at IS NULL`,
  find: sql`SELECT 1 FROM plant_store.tokens WHERE store = $1 AND hash = $2`,
  findById: sql<RecordRow>`${selectRecords} WHERE ${ofStore} AND hash BETWEEN $2 AND $3`,
  revoke: sql`
    UPDATE plant_store.tokens SET revoked_at = coalesce(revoked_at, $4)
    WHERE store = $1 AND hash BETWEEN $2 AND $3`,
  listAll: sql<RecordRow>`
    ${selectRecords} WHERE (tokens.store, hash) > ($1, $2)
    ORDER BY tokens.store, hash LIMIT $3`,
  listStore: sql<RecordRow>`${selectRecords} WHERE ${ofStore} AND hash > $2 ORDER BY hash LIMIT $3`,
  listUser: sql<RecordRow>`
    ${selectRecords} WHERE ${ofStore} AND user_id = $4 AND hash > $2 ORDER BY hash LIMIT $3`,
  countOwn: sql<CountedToken>`
    SELECT hash, created_at, expires_at, revoked_at FROM plant_store.tokens
    WHERE store = $1 AND user_id = $2 ORDER BY hash LIMIT ${maxCountedTokens}`,
  deleteOwn: sql`DELETE FROM plant_store.tokens WHERE store = $1 AND hash = ANY ($2::bytea[])`,
  recordUses: sql`
    UPDATE plant_store.tokens SET last_used_at = $2
    WHERE store = $1 AND hash = ANY ($3::bytea[]) AND (last_used_at IS NULL OR last_used_at < $2)`,
};

export class Tokens extends Grants implements IdentityStorage {
  readonly #appendToLog: AppendToLog;

  constructor(servers: Servers, versions: GrantsVersions, names: Names, appendToLog: AppendToLog) {
    super(servers, versions, names);
    this.#appendToLog = appendToLog;
  }

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
    const columns = [null, formatScopes(scopes), label, createdAtMs, expiresAtMs ?? null] as const;
    const server = await this.servers.ofStore(owner.store);
    const id = tokenId(hash, owner.store);
    const created: LogEntry = {
      event: 'token-created',
      owner: owner.user,
      name: id,
      tag: columns[1],
    };
    const roleChanged: LogEntry = { event: 'role-changed', owner: owner.user, tag: role };
    await server.transactInTwo(
      [
        lockVersion(owner.store),
        [tokenSql.find, [owner.store, hash]],
        [tokenSql.findRole, [owner.store, owner.user]],
      ],
      ([locked, committed = [], roles = []]) =>
        committed.length > 0 // by an earlier attempt
          ? []
          : [
              changeGrantsVersion(owner.store),
              reviveUser(owner, role),
              [tokenSql.addToken, [owner.store, hash, owner.user, ...columns]],
              ...this.#appendToLog(owner.store, locked, [
                ...(roles.some(([before]) => before !== (role ?? before)) ? [roleChanged] : []),
                created,
              ]),
            ],
    );
    return { token: text, id };
  }

  async createOwnToken(
    { caller, tokenId: parent }: Grant,
    token: OwnToken,
    request?: string,
  ): Promise<void> {
    const { store, user, identified: by } = caller;
    const { scopes, label, createdAtMs, expiresAtMs } = token;
    const hash = Buffer.from(token.hash);
    const columns = [formatScopes(scopes), label, createdAtMs, expiresAtMs ?? null] as const;
    const created = { owner: user, name: tokenId(hash, store), tag: columns[0] };
    const entry: LogEntry = { event: 'token-created', by, request, ...created };
    // The first statement locks the row of the store: what the others read does not change until the commit.
    const first: BoundStatement[] = [
      lockVersion(store),
      [tokenSql.countOwn, [store, user]],
      ...identifyAgain(caller),
    ];
    const server = await this.servers.ofStore(store);
    await server.transactInTwo(first, ([locked, counted = [], found]) => {
      const tokens = counted as unknown as CountedToken[]; // the rows of `countOwn`
      if (tokens.some(([each]) => hash.equals(each))) return []; // an earlier attempt was committed
      const refusal = refusalOf(caller, found);
      if (refusal !== undefined) return refusal;
      const ended = tokensToDelete(tokens, createdAtMs);
      if (ended instanceof Problem) return ended;
      const values = [store, hash, user, lineBelow(lineOf(found), parent), ...columns];
      const add: BoundStatement[] = [
        changeGrantsVersion(store),
        [tokenSql.addToken, values],
        ...this.#appendToLog(store, locked, [entry]),
      ];
      return ended.length === 0 ? add : [[tokenSql.deleteOwn, [store, ended]], ...add];
    });
  }

  async listTokens(query: TokenQuery): Promise<TokenRecord[]> {
    return (await this.#rows(query)).map(toRecord);
  }

  async #rows({ store: name, owner, after, limit }: TokenQuery): Promise<RecordRow[]> {
    const hash = after?.hash ?? noHash;
    if (owner !== undefined) {
      const { store, user } = owner;
      return this.servers.read(store, tokenSql.listUser, [store, hash, limit, user]);
    }
    if (name === undefined) {
      const server = await this.servers.anyServer();
      return server.read(tokenSql.listAll, [after?.store ?? 0, hash, limit]);
    }
    const store = await this.names.findStore(name);
    if (store === undefined) return [];
    return this.servers.read(store, tokenSql.listStore, [store, hash, limit]);
  }

  async revokeToken(
    id: string,
    revokedAtMs: number,
    by?: Grant,
    request?: string,
  ): Promise<TokenRecord | undefined> {
    const caller = by?.caller;
    const range = rangeOf(id);
    const store = caller?.store ?? range?.store;
    if (store === undefined) return undefined;
    const { first, last } = range?.store === store ? range : noTokens;
    const find: BoundStatement = [tokenSql.findById, [store, first, last]];
    let attempts = 0;
    let revokedBefore: RecordRow | undefined;
    const server = await this.servers.ofStore(store);
    const rows = await server.transactInTwo(
      [lockVersion(store), find, ...identifyAgain(caller)],
      ([locked, tokens = [], identified]) => {
        const [found] = tokens;
        const canBeDone = by?.tokenId === id && attempts++ > 0; // by an earlier attempt
        const refusal = canBeDone ? undefined : refusalOf(caller, identified);
        if (refusal !== undefined) return refusal;
        if (found === undefined) return [];
        const row = found as unknown as RecordRow; // of `find`
        if (caller !== undefined && caller.user !== row[11]) return [];
        if (by !== undefined) assertCanRevoke(by, { ...toRecord(row), line: row[12] });
        const { scopes, revokedAtMs: before } = toRecord(row);
        if (before !== undefined) {
          revokedBefore = row;
          return [];
        }
        const token = { owner: row[11], name: id, tag: formatScopes(scopes) };
        const entry: LogEntry = {
          event: 'token-revoked',
          by: caller?.identified,
          request,
          ...token,
        };
        return [
          changeGrantsVersion(store),
          ...this.#appendToLog(store, locked, [entry]),
          [tokenSql.revoke, [store, first, last, revokedAtMs]],
          find,
        ];
      },
    );
    const revoked = revokedBefore ?? rows.at(-1)?.[0];
    return revoked && toRecord(revoked as unknown as RecordRow); // of `find`
  }

  /** Writes to each server separately, so that a server that does not respond does not delay the others. */
  async recordUses(uses: readonly TokenUse[]): Promise<void> {
    const together = Map.groupBy(uses, ({ store }) => this.servers.placeOf(store));
    await settled([...together.values()].map((some) => this.#recordUses(some)));
  }

  /** One statement for each store and minute. It locks tokens in the order of the index, so none deadlock. */
  async #recordUses(uses: readonly TokenUse[]): Promise<void> {
    const together = Map.groupBy(uses, ({ store, usedAtMs }) => `${store} ${usedAtMs}`);
    for (const group of together.values()) {
      const [{ store, usedAtMs } = { store: 0, usedAtMs: 0 }] = group; // it has at least one
      const hashes = group.map(({ hash }) => Buffer.from(hash));
      const server = await this.servers.ofStore(store);
      await server.transact([tokenSql.recordUses, [store, usedAtMs, hashes]]);
    }
  }
}

/** Comes before every hash. */
const noHash = Buffer.alloc(0);
const noTokens = { first: noHash, last: noHash };

function toRecord(row: RecordRow): TokenRecord {
  const { 8: store, 9: user, 10: role } = row;
  return recordOf(row, { store, user, role });
}
