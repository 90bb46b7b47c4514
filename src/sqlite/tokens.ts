/**
 * Stores, users and tokens in SQLite. The caller begins and ends transactions.
 */
import type { DatabaseSync } from 'node:sqlite';
import {
  callerOf,
  familyOfUser,
  parseScopes,
  formatScopes,
  type Caller,
  type Claims,
  type Credential,
  type Grant,
  type Identified,
  type Identity,
  type Role,
} from '../access.ts';
import {
  unrevokedCaller,
  type CreatedToken,
  type FoundNames,
  type NewToken,
  type TokenQuery,
  type TokenRecord,
} from '../identity-storage.ts';
import { canRevoke, familyOf, type Revoker } from '../own-tokens.ts';
import { cannotRevoke, defect, Problem } from '../problem.ts';
import { hashToken, makeToken, rangeOf, tokenId } from '../token.ts';
import type { Shares } from './shares.ts';
import { prepare, type Statement } from './statement.ts';

const selectRecords = `
  SELECT tokens.hash, tokens.store, stores.name, users.name, users.role,
         tokens.scopes, tokens.label, tokens.created_at, tokens.expires_at, tokens.revoked_at,
         tokens.last_used_at, tokens.family
  FROM tokens JOIN stores USING (store) JOIN users USING (store, user)`;

/** `:user` is null if any can have the tokens. */
const withId = `
    tokens.hash BETWEEN :first AND :last AND tokens.store = :store
      AND (:user IS NULL OR tokens.user = :user)`;

const versionSql = 'SELECT count FROM grant_changes';

export const tokenSql = {
  findGrant: `
    SELECT tokens.store, tokens.user, stores.name, users.name, users.role, tokens.scopes,
           tokens.expires_at, coalesce(tokens.revoked_at, users.removed_at), tokens.family
    FROM tokens JOIN stores USING (store) JOIN users USING (store, user) WHERE tokens.hash = ?`,
  findUser: `
    SELECT users.store, users.user, users.role, users.removed_at
    FROM stores JOIN users USING (store) WHERE stores.name = :store AND users.name = :user`,
  listAll: `${selectRecords} WHERE (tokens.store, tokens.hash) > (:afterStore, :after)
    ORDER BY tokens.store, tokens.hash LIMIT :limit`,
  listStore: `${selectRecords}
    WHERE tokens.store = (SELECT store FROM stores WHERE name = :store)
      AND tokens.hash > :after
    ORDER BY tokens.hash LIMIT :limit`,
  listUser: `${selectRecords}
    WHERE tokens.store = :store AND tokens.user = :user AND tokens.hash > :after
    ORDER BY tokens.hash LIMIT :limit`,
  findById: `${selectRecords} WHERE ${withId}`,
  findNames: `
    SELECT stores.store, users.user, users.role
    FROM stores LEFT JOIN users ON users.store = stores.store AND users.name = :user AND removed_at IS NULL
    WHERE stores.name = :store`,
  revoke: 'UPDATE tokens SET revoked_at = :revokedAtMs WHERE hash = :hash AND revoked_at IS NULL',
  addStore: `INSERT INTO stores (name) VALUES (:store) ON CONFLICT DO NOTHING`,
  addUser: `
    INSERT INTO users (store, user, name, role)
    SELECT store, coalesce((SELECT max(user) FROM users WHERE users.store = stores.store), 0) + 1,
           :user, coalesce(:role, 'member')
    FROM stores WHERE name = :store
    ON CONFLICT (store, name) DO UPDATE
    SET role = coalesce(:role, iif(removed_at IS NULL, role, 'member')), removed_at = NULL
    RETURNING store, user`,
  // A user who was removed before the JWT was issued has nothing of the former one.
  addClaimedUser: `
    INSERT INTO users (store, user, name, role)
    SELECT store, coalesce((SELECT max(user) FROM users WHERE users.store = stores.store), 0) + 1,
           :user, 'member'
    FROM stores WHERE name = :store
    ON CONFLICT (store, name) DO UPDATE SET role = 'member', removed_at = NULL
    WHERE removed_at < :issuedAtMs`,
  addToken: `
    INSERT INTO tokens (hash, store, user, family, scopes, label, created_at, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
};

export class Tokens {
  readonly #shares: Shares;
  readonly #readVersion: Statement<[count: number]>;
  readonly #findGrant: Statement<GrantRow>;
  readonly #findUser: Statement<UserRow>;
  readonly #listAll: Statement<RecordRow>;
  readonly #listStore: Statement<RecordRow>;
  readonly #listUser: Statement<RecordRow>;
  readonly #findById: Statement<RecordRow>;
  readonly #findNames: Statement<[store: number, user: number | null, role: Role | null]>;
  readonly #revoke: Statement;
  readonly #addStore: Statement;
  readonly #addUser: Statement<[store: number, user: number]>;
  readonly #addClaimedUser: Statement;
  readonly #addToken: Statement;
  #version: number | undefined;

  constructor(database: DatabaseSync, shares: Shares) {
    this.#shares = shares;
    this.#readVersion = prepare(database, versionSql);
    this.#findGrant = prepare(database, tokenSql.findGrant);
    this.#findUser = prepare(database, tokenSql.findUser);
    this.#listAll = prepare(database, tokenSql.listAll);
    this.#listStore = prepare(database, tokenSql.listStore);
    this.#listUser = prepare(database, tokenSql.listUser);
    this.#findById = prepare(database, tokenSql.findById);
    this.#findNames = prepare(database, tokenSql.findNames);
    this.#revoke = prepare(database, tokenSql.revoke);
    this.#addStore = prepare(database, tokenSql.addStore);
    this.#addUser = prepare(database, tokenSql.addUser);
    this.#addClaimedUser = prepare(database, tokenSql.addClaimedUser);
    this.#addToken = prepare(database, tokenSql.addToken);
  }

  findNames({ store, user }: Pick<NewToken, 'store' | 'user'>): FoundNames {
    const [number, userNumber, role] = this.#findNames.get({ store, user }) ?? [];
    return { store: number, user: userNumber ?? undefined, role: role ?? undefined };
  }

  /** Creates the user of a JWT, and the store if needed. Does not change a user who exists. */
  createUser(store: string, user: string, issuedAtMs: number): void {
    this.#addStore.run({ store });
    this.#addClaimedUser.run({ store, user, issuedAtMs });
  }

  create(token: NewToken): CreatedToken {
    const { store: storeName, user: userName, role = null } = token;
    const { scopes, label, createdAtMs, expiresAtMs = null } = token;
    this.#addStore.run({ store: storeName });
    const owner = this.#addUser.get({ store: storeName, user: userName, role });
    if (owner === undefined) throw defect(new Error(`store ${storeName} is missing`));
    const [store, user] = owner;
    const text = makeToken(store);
    const hash = hashToken(text);
    const columns = [null, formatScopes(scopes), label, createdAtMs, expiresAtMs];
    this.#addToken.run(hash, store, user, ...columns);
    return { token: text, id: tokenId(hash, store) };
  }

  /**
   * For writes: undefined if no grant has changed since the caller was identified. Otherwise identifies them again, and
   * throws `invalid-token` if their token was revoked. An operator has no token.
   */
  callerSince(by: Identified | undefined): Caller | undefined {
    if (by === undefined) return undefined;
    const [version, tokenHash, claims] = by;
    this.#version ??= this.#currentVersion();
    if (version === this.#version) return undefined;
    const hash = Buffer.from(tokenHash, 'latin1');
    const caller = unrevokedCaller(this.findGrant({ tokenHash: hash, claims }));
    if (caller instanceof Problem) throw caller;
    return caller;
  }

  /** Call it at the start of a transaction, and after each write in it that can change grants. */
  clearVersion(): void {
    this.#version = undefined;
  }

  #currentVersion(): number {
    const [version = 0] = this.#readVersion.get() ?? [];
    return version;
  }

  /** Undefined if there is no such token, or if the user of a JWT does not exist at the time of its issue. */
  findGrant({ tokenHash, claims }: Pick<Credential, 'tokenHash' | 'claims'>): Grant | undefined {
    return claims === undefined
      ? this.#findTokenGrant(tokenHash)
      : this.#findUserGrant(tokenHash, claims);
  }

  #findTokenGrant(hash: Uint8Array): Grant | undefined {
    const row = this.#findGrant.get(hash);
    if (row === undefined) return undefined;
    const [store, user, storeName, userName, role, scopes, expiresAt, revokedAt, family] = row;
    const id = tokenId(hash, store);
    const terms = {
      isStored: true,
      family: familyOf(family, id),
      scopes: parseScopes(scopes),
      claims: undefined,
      expiresAtMs: expiresAt ?? undefined,
      revokedAtMs: revokedAt ?? undefined,
    };
    return this.#grantOf(hash, id, { store, user, storeName, userName, role, ...terms });
  }

  #findUserGrant(hash: Uint8Array, claims: Claims): Grant | undefined {
    const { storeName, userName, scopes, issuedAtMs, expiresAtMs } = claims;
    const row = this.#findUser.get({ store: storeName, user: userName });
    if (row === undefined) return undefined;
    const [store, user, storedRole, removedAtMs] = row;
    if (removedAtMs !== null && removedAtMs < issuedAtMs) return undefined;
    const role = claims.role ?? storedRole;
    const terms = {
      isStored: false,
      family: familyOfUser({ store, user }),
      scopes,
      claims,
      expiresAtMs,
      revokedAtMs: removedAtMs ?? undefined,
    };
    const id = tokenId(hash, undefined);
    return this.#grantOf(hash, id, { store, user, storeName, userName, role, ...terms });
  }

  #grantOf(
    hash: Uint8Array,
    id: string,
    { store, user, scopes, claims, ...rest }: FoundGrant,
  ): Grant {
    const { role, userName } = rest;
    const received = role === 'manager' ? [] : this.#shares.reachOf(store, userName);
    const { buffer, byteOffset, byteLength } = hash;
    const key = Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
    const identified = [this.#currentVersion(), key, claims] as const;
    const caller = callerOf({ store, user, identified }, role, scopes, received);
    return { caller, tokenId: id, tokenHash: hash, ...rest };
  }

  /** Throws if the tables cannot be read. */
  check(): void {
    this.#findGrant.get(noHash);
  }

  list({ store, owner, after, limit }: TokenQuery): TokenRecord[] {
    const { store: afterStore, hash = noHash } = after ?? { store: 0 };
    const range = { after: hash, limit };
    if (owner !== undefined) {
      const { store: number, user } = owner;
      return this.#listUser.all({ ...range, store: number, user }).map(toRecord);
    }
    if (store === undefined) return this.#listAll.all({ ...range, afterStore }).map(toRecord);
    return this.#listStore.all({ ...range, store }).map(toRecord);
  }

  /** If `by` is given, revokes only a token of the same user. */
  revoke(id: string, revokedAtMs: number, by: Revoker | undefined): TokenRecord | undefined {
    const range = rangeOf(id);
    if (range === undefined) return undefined;
    if (by !== undefined && by.store !== range.store) return undefined;
    const row = this.#findById.get({ ...range, user: by?.user ?? null });
    if (row === undefined) return undefined;
    const record = toRecord(row);
    const [hash, line] = [row[0], row[11]];
    if (by !== undefined && !canRevoke(by, { ...record, line })) throw cannotRevoke();
    this.#revoke.run({ hash, revokedAtMs });
    return { ...record, revokedAtMs: record.revokedAtMs ?? revokedAtMs };
  }
}

/** Comes before every hash, and no token has it. */
const noHash = Buffer.alloc(0);

/** What a token or its claims grant, before the shares of the user are added. */
type FoundGrant = Identity &
  Omit<Grant, 'caller' | 'tokenId' | 'tokenHash'> &
  Pick<Claims, 'scopes'> & { claims: Claims | undefined };

// Rows of STRICT tables: the schema enforces these types.
type GrantRow = [
  store: number,
  user: number,
  storeName: string,
  userName: string,
  role: Role,
  scopes: string,
  expiresAt: number | null,
  revokedAt: number | null,
  family: string | null,
];

type UserRow = [store: number, user: number, role: Role, removedAt: number | null];

type RecordRow = [
  hash: Uint8Array,
  number: number,
  store: string,
  user: string,
  role: Role,
  scopes: string,
  label: string,
  createdAt: number,
  expiresAt: number | null,
  revokedAt: number | null,
  lastUsedAt: number | null,
  line: string | null,
];

function toRecord(row: RecordRow): TokenRecord {
  const [hash, number, store, user, role, scopes, label, createdAtMs, ...times] = row;
  const [expiresAt, revokedAt, lastUsedAt] = times;
  return {
    id: tokenId(hash, number),
    position: { store: number, hash },
    store,
    user,
    role,
    scopes: parseScopes(scopes),
    label,
    createdAtMs,
    expiresAtMs: expiresAt ?? undefined,
    revokedAtMs: revokedAt ?? undefined,
    lastUsedAtMs: lastUsedAt ?? undefined,
  };
}
