/**
 * Stores, users and tokens in SQLite. Transactions are begun by the caller.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Grant, Role, Scope } from '../access.ts';
import type { NewToken, TokenQuery, TokenRecord } from '../storage.ts';
import { isTokenId, lastHashOf, tokenId } from '../token.ts';

const record = `
  SELECT tokens.hash, stores.name AS store, users.name AS user, users.role, tokens.scopes,
         tokens.label, tokens.created_at, tokens.expires_at, tokens.revoked_at
  FROM tokens JOIN stores USING (store) JOIN users USING (store, user)`;

export const tokenSql = {
  findGrant: `
    SELECT tokens.store, tokens.user, users.role, tokens.scopes, tokens.expires_at, tokens.revoked_at
    FROM tokens JOIN users USING (store, user) WHERE tokens.hash = ?`,
  listAll: `${record} WHERE tokens.hash > :after ORDER BY tokens.hash LIMIT :limit`,
  listStore: `${record} WHERE tokens.hash > :after AND stores.name = :store
    ORDER BY tokens.hash LIMIT :limit`,
  findById: `${record} WHERE tokens.hash BETWEEN :first AND :last`,
  revoke: `
    UPDATE tokens SET revoked_at = :revokedAtMs
    WHERE hash BETWEEN :first AND :last AND revoked_at IS NULL`,
  addStore: `INSERT INTO stores (name) VALUES (:store) ON CONFLICT DO NOTHING`,
  addUser: `
    INSERT INTO users (store, user, name, role)
    SELECT store, coalesce((SELECT max(user) FROM users WHERE users.store = stores.store), 0) + 1,
           :user, coalesce(:role, 'member')
    FROM stores WHERE name = :store
    ON CONFLICT (store, name) DO UPDATE SET role = coalesce(:role, role)`,
  addToken: `
    INSERT INTO tokens (hash, store, user, scopes, label, created_at, expires_at)
    SELECT :hash, store, user, :scopes, :label, :createdAtMs, :expiresAtMs
    FROM users JOIN stores USING (store) WHERE stores.name = :store AND users.name = :user`,
};

type TokenStatements = Record<keyof typeof tokenSql, StatementSync>;

export class Tokens {
  readonly #statements: TokenStatements;

  constructor(database: DatabaseSync) {
    this.#statements = {
      findGrant: database.prepare(tokenSql.findGrant),
      listAll: database.prepare(tokenSql.listAll),
      listStore: database.prepare(tokenSql.listStore),
      findById: database.prepare(tokenSql.findById),
      revoke: database.prepare(tokenSql.revoke),
      addStore: database.prepare(tokenSql.addStore),
      addUser: database.prepare(tokenSql.addUser),
      addToken: database.prepare(tokenSql.addToken),
    };
    this.#statements.findGrant.setReturnArrays(true); // it runs with each request
  }

  create({ hash, store, user, role, scopes, label, createdAtMs, expiresAtMs }: NewToken): void {
    this.#statements.addStore.run({ store });
    this.#statements.addUser.run({ store, user, role: role ?? null });
    this.#statements.addToken.run({
      hash,
      store,
      user,
      scopes: scopes.join(' '),
      label,
      createdAtMs,
      expiresAtMs: expiresAtMs ?? null,
    });
  }

  findGrant(hash: Uint8Array): Grant | undefined {
    const row = this.#statements.findGrant.get(hash) as unknown as GrantRow | undefined;
    if (row === undefined) return undefined;
    const [store, user, role, scopes, expiresAt, revokedAt] = row;
    return {
      caller: { store, user, role, scopes: new Set(scopesOf(scopes)) },
      expiresAtMs: expiresAt ?? undefined,
      revokedAtMs: revokedAt ?? undefined,
    };
  }

  /** Reads something, whatever it is. */
  check(): void {
    this.#statements.findGrant.get(lastHashOf(''));
  }

  list({ store, after = '', limit }: TokenQuery): TokenRecord[] {
    const range = { after: lastHashOf(after), limit };
    const rows =
      store === undefined
        ? this.#statements.listAll.all(range)
        : this.#statements.listStore.all({ ...range, store });
    return rows.map(recordOf);
  }

  revoke(id: string, revokedAtMs: number): TokenRecord | undefined {
    if (!isTokenId(id)) return undefined;
    const range = { first: Buffer.from(id, 'hex'), last: lastHashOf(id) };
    this.#statements.revoke.run({ ...range, revokedAtMs });
    const row = this.#statements.findById.get(range);
    return row && recordOf(row);
  }
}

// Rows of STRICT tables: the types are the schema's.
type GrantRow = [
  store: number,
  user: number,
  role: Role,
  scopes: string,
  expiresAt: number | null,
  revokedAt: number | null,
];

interface RecordRow {
  hash: Uint8Array;
  store: string;
  user: string;
  role: Role;
  scopes: string;
  label: string;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
}

function recordOf(untyped: Record<string, unknown>): TokenRecord {
  const row = untyped as unknown as RecordRow;
  return {
    id: tokenId(row.hash),
    store: row.store,
    user: row.user,
    role: row.role,
    scopes: scopesOf(row.scopes),
    label: row.label,
    createdAtMs: row.created_at,
    expiresAtMs: row.expires_at ?? undefined,
    revokedAtMs: row.revoked_at ?? undefined,
  };
}

function scopesOf(text: string): Scope[] {
  return text.split(' ') as Scope[]; // written by create() alone
}
