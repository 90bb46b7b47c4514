/**
 * Tokens in SQLite, and the users and stores that are created with them.
 */
import type { DatabaseSync } from 'node:sqlite';
import { formatScopes, type Grant, type Role } from '../access.ts';
import { recordOf, type TokenRow } from '../identity-rows.ts';
import type {
  CreatedToken,
  FoundNames,
  IdentityStorage,
  NewToken,
  TokenQuery,
  TokenRecord,
  TokenUse,
} from '../identity-storage.ts';
import {
  canRevoke,
  lineBelow,
  maxCountedTokens,
  revokerOf,
  tokensToDelete,
  type CountedToken,
  type OwnToken,
} from '../own-tokens.ts';
import { cannotRevoke, defect, tooManyTokens } from '../problem.ts';
import { hashToken, makeToken, rangeOf, tokenId } from '../token.ts';
import type { Grants } from './grants.ts';
import { Statements, type Sync } from './driver.ts';

const selectRecords = `
  SELECT tokens.store, tokens.hash, tokens.scopes, tokens.label, tokens.created_at, tokens.expires_at,
         tokens.revoked_at, tokens.last_used_at, stores.name, users.name, users.role, tokens.family
  FROM tokens JOIN stores USING (store) JOIN users USING (store, user)`;

// The schema enforces the types of rows: its tables are STRICT.
type RecordRow = readonly [
  ...TokenRow,
  store: string,
  user: string,
  role: Role,
  line: string | null,
];

/** Comes before every hash, and no token has it. */
const noHash = Buffer.alloc(0);

/** The methods of IdentityStorage that need no more than a connection. */
export type TokenStorage = Omit<IdentityStorage, 'maxLookups' | 'placeOf' | 'identify'>;

export class Tokens extends Statements implements Sync<TokenStorage> {
  readonly #grants: Grants;
  readonly #findNames = this.prepare<[store: number, user: number | null, role: Role | null]>(`
    SELECT stores.store, users.user, users.role
    FROM stores LEFT JOIN users ON users.store = stores.store AND users.name = :user AND removed_at IS NULL
    WHERE stores.name = :store`);
  readonly #addStore = this.prepare('INSERT INTO stores (name) VALUES (?) ON CONFLICT DO NOTHING');
  // A removed user becomes a new one, who inherits nothing, unless their JWT was issued before the removal.
  readonly #addUser = this.prepare<[store: number, user: number]>(`
    INSERT INTO users (store, user, name, role)
    SELECT store, coalesce((SELECT max(user) FROM users WHERE users.store = stores.store), 0) + 1,
           :user, coalesce(:role, 'member')
    FROM stores WHERE name = :store
    ON CONFLICT (store, name) DO UPDATE
    SET role = coalesce(:role, iif(removed_at IS NULL, role, 'member')), removed_at = NULL
    WHERE :issuedAtMs IS NULL OR removed_at < :issuedAtMs
    RETURNING store, user`);
  readonly #add = this.prepare(`
    INSERT INTO tokens (hash, store, user, family, scopes, label, created_at, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  readonly #findLine = this.prepare<[line: string | null]>(
    'SELECT family FROM tokens WHERE hash = ?',
  );
  readonly #count = this.prepare<CountedToken>(`
    SELECT hash, created_at, expires_at, revoked_at FROM tokens INDEXED BY tokens_by_user
    WHERE store = ? AND user = ? ORDER BY hash LIMIT ${maxCountedTokens}`);
  readonly #delete = this.prepare('DELETE FROM tokens WHERE hash = ?');
  readonly #listAll = this.prepare<RecordRow>(`
    ${selectRecords} WHERE (tokens.store, tokens.hash) > (:afterStore, :after)
    ORDER BY tokens.store, tokens.hash LIMIT :limit`);
  readonly #listStore = this.prepare<RecordRow>(`
    ${selectRecords}
    WHERE tokens.store = (SELECT store FROM stores WHERE name = :store) AND tokens.hash > :after
    ORDER BY tokens.hash LIMIT :limit`);
  readonly #listUser = this.prepare<RecordRow>(`
    ${selectRecords} WHERE tokens.store = :store AND tokens.user = :user AND tokens.hash > :after
    ORDER BY tokens.hash LIMIT :limit`);
  // `:user` is null if the token can be anybody's.
  readonly #findById = this.prepare<RecordRow>(`
    ${selectRecords}
    WHERE tokens.hash BETWEEN :first AND :last AND tokens.store = :store
      AND (:user IS NULL OR tokens.user = :user)`);
  readonly #revoke = this.prepare(
    'UPDATE tokens SET revoked_at = ?2 WHERE hash = ?1 AND revoked_at IS NULL',
  );
  readonly #recordUse = this.prepare(`
    UPDATE tokens SET last_used_at = ?2
    WHERE hash = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)`);

  constructor(database: DatabaseSync, grants: Grants) {
    super(database);
    this.#grants = grants;
  }

  findNames({ store, user }: Pick<NewToken, 'store' | 'user'>): FoundNames {
    const [number, userNumber, role] = this.#findNames.get({ store, user }) ?? [];
    return { store: number, user: userNumber ?? undefined, role: role ?? undefined };
  }

  /** Creates the user of a JWT, and the store if needed. Does not change a user who exists. */
  createUser(store: string, user: string, issuedAtMs: number): void {
    this.#addStore.run(store);
    this.#addUser.get({ store, user, role: null, issuedAtMs });
  }

  createToken({ store: storeName, user: userName, role, ...token }: NewToken): CreatedToken {
    this.#addStore.run(storeName);
    const names = { store: storeName, user: userName };
    const owner = this.#addUser.get({ ...names, role: role ?? null, issuedAtMs: null });
    if (owner === undefined) throw defect(new Error(`store ${storeName} is missing`));
    const [store, user] = owner;
    const text = makeToken(store);
    const hash = hashToken(text);
    this.#insert(store, user, null, { expiresAtMs: undefined, ...token, hash });
    return { token: text, id: tokenId(hash, store) };
  }

  createOwnToken({ caller, tokenHash, tokenId: id }: Grant, token: OwnToken): void {
    const { store, user, identified } = caller;
    this.#grants.callerSince(identified);
    const [line = null] = this.#findLine.get(tokenHash) ?? [];
    const ended = tokensToDelete(this.#count.all(store, user), token.createdAtMs);
    if (ended === undefined) throw tooManyTokens();
    for (const each of ended) this.#delete.run(each);
    this.#insert(store, user, lineBelow(line, id), token);
  }

  #insert(store: number, user: number, line: string | null, token: OwnToken): void {
    const { hash, scopes, label, createdAtMs, expiresAtMs = null } = token;
    this.#add.run(hash, store, user, line, formatScopes(scopes), label, createdAtMs, expiresAtMs);
  }

  listTokens({ store, owner, after, limit }: TokenQuery): TokenRecord[] {
    const { store: afterStore, hash = noHash } = after ?? { store: 0 };
    const range = { after: hash, limit };
    if (owner !== undefined) {
      const { store: number, user } = owner;
      return this.#listUser.all({ ...range, store: number, user }).map(toRecord);
    }
    if (store === undefined) return this.#listAll.all({ ...range, afterStore }).map(toRecord);
    return this.#listStore.all({ ...range, store }).map(toRecord);
  }

  revokeToken(id: string, revokedAtMs: number, by?: Grant): TokenRecord | undefined {
    const revoker = by && revokerOf(by);
    this.#grants.callerSince(revoker?.identified);
    const range = rangeOf(id);
    if (range === undefined || range.store !== (revoker?.store ?? range.store)) return undefined;
    const row = this.#findById.get({ ...range, user: revoker?.user ?? null });
    if (row === undefined) return undefined;
    const record = toRecord(row);
    const { hash } = record.position;
    if (revoker !== undefined && !canRevoke(revoker, { ...record, line: row[11] }))
      throw cannotRevoke();
    this.#revoke.run(hash, revokedAtMs);
    return { ...record, revokedAtMs: record.revokedAtMs ?? revokedAtMs };
  }

  recordUses(uses: readonly TokenUse[]): void {
    for (const { hash, usedAtMs } of uses) this.#recordUse.run(hash, usedAtMs);
  }
}

function toRecord(row: RecordRow): TokenRecord {
  const [store, user, role] = [row[8], row[9], row[10]];
  return recordOf(row, { store, user, role });
}
