/**
 * Tokens on both engines, and the users who are created with them.
 */
import { formatScopes, parseScopes, stateOf, type Grant, type Role } from '../access/access.ts';
import type {
  IdentityStorage,
  NewToken,
  StoredToken,
  TokenRecord,
} from '../access/identity-storage.ts';
import {
  assertCanRevoke,
  invitationUsed,
  lineBelow,
  maxCountedTokens,
  tokensToDelete,
  type CountedToken,
  type OwnToken,
} from '../access/own-tokens.ts';
import { hashToken, isRepeated, makeToken, rangeOf, tokenId } from '../access/token.ts';
import { Problem } from '../problem.ts';
import { shortHashChars } from '../shared/short-hash.ts';
import { sql, type Query } from './statement.ts';
import { assertManager, ensureUser, isAuthorManager, isManager, userSql } from './users.ts';
import { writeOf, type Engine } from './write.ts';

const tokenColumns =
  'scopes, label, created_at, expires_at, revoked_at, last_used_at, renewable_until, uses, family';
const recordsFrom = (tokens: string) => `
    SELECT tokens.store, hash, stores.name, users.name, users.role, users.id, ${tokenColumns}
    FROM ${tokens}
    JOIN plant_store.stores ON stores.store = tokens.store
    JOIN plant_store.users ON users.store = tokens.store AND users.id = tokens.user_id`;
const selectRecords = recordsFrom('plant_store.tokens');
const byUser = 'plant_store.tokens /* INDEXED BY tokens_by_user */';
const ofUser = `
  store = $1 AND user_id = (
    SELECT users.id FROM plant_store.users WHERE users.store = $1 AND users.name = $2)`;
const ofStore = 'tokens.store = $1 AND stores.store = $1 AND users.store = $1';

type TokenRow = readonly [
  scopes: string,
  label: string,
  createdAt: number,
  expiresAt: number | null,
  revokedAt: number | null,
  lastUsedAt: number | null,
  renewableUntil: number | null,
  uses: number | null,
  line: string | null,
];

type RecordRow = readonly [
  storeNumber: number,
  hash: Uint8Array,
  store: string,
  user: string,
  role: Role,
  owner: number,
  ...TokenRow,
];

export const tokenSql = {
  find: sql<TokenRow>`
    SELECT ${tokenColumns} FROM plant_store.tokens WHERE store = $1 AND hash = $2`,
  add: sql`
    INSERT INTO plant_store.tokens
      (store, hash, user_id, family, scopes, label, created_at, expires_at, renewable_until, uses,
       salt)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
  spend: sql`UPDATE plant_store.tokens SET uses = uses - 1 WHERE store = $1 AND hash = $2`,
  findById: sql<RecordRow>`${selectRecords} WHERE ${ofStore} AND hash BETWEEN $2 AND $3`,
  revoke: sql`UPDATE plant_store.tokens SET revoked_at = $3 WHERE store = $1 AND hash = $2`,
  listStore: sql<RecordRow>`${selectRecords} WHERE ${ofStore} AND hash > $2 ORDER BY hash LIMIT $3`,
  listUser: sql<RecordRow>`
    ${recordsFrom(byUser)} WHERE ${ofStore} AND user_id = $4 AND hash > $2 ORDER BY hash LIMIT $3`,
  countOwn: sql<CountedToken>`
    SELECT hash, created_at, expires_at, revoked_at, uses FROM ${byUser}
    WHERE ${ofUser} ORDER BY hash LIMIT ${maxCountedTokens}`,
  findRepeated: sql<readonly [salt: string, ...TokenRow]>`
    SELECT salt, ${tokenColumns} FROM ${byUser}
    WHERE ${ofUser} AND substr(salt, 1, ${shortHashChars}) = substr($3, 1, ${shortHashChars})`,
  deleteOwn: sql`DELETE FROM plant_store.tokens WHERE store = $1 AND hash = ANY ($2::bytea[])`,
  recordUses: sql`
    UPDATE plant_store.tokens SET last_used_at = $2
    WHERE store = $1 AND hash = ANY ($3::bytea[]) AND (last_used_at IS NULL OR last_used_at < $2)`,
};

export const tokenWrites = {
  createToken: (
    store: number,
    { user: name, role, expiresAtMs, ...token }: Omit<NewToken, 'store'>,
    hash: Uint8Array,
  ) =>
    writeOf({
      store,
      reads: [
        [tokenSql.find, [store, hash]],
        [userSql.find, [store, name]],
        [userSql.lastUser, [store]],
      ],
      decide([committed, [found], [last]]) {
        if (committed.length > 0) return { result: undefined }; // by an earlier attempt
        const { user, writes, entries } = ensureUser({ store, name, found, last }, role);
        const added = addToken(store, user, null, { ...token, expiresAtMs, hash, salt: '' });
        return {
          result: undefined,
          writes: () => [...writes, added.write],
          entries: [...entries, added.entry],
        };
      },
    }),

  createOwnToken: (
    { caller, userName, tokenHash, tokenId: parent }: Grant,
    token: OwnToken,
    request?: string,
    other?: string,
  ) => {
    const { store, identified: by } = caller;
    const name = other ?? userName;
    return writeOf({
      store,
      by,
      request,
      reads: [
        [tokenSql.findRepeated, [store, name, token.salt]],
        [tokenSql.find, [store, tokenHash]],
        [userSql.find, [store, name]],
        [userSql.lastUser, [store]],
        [tokenSql.countOwn, [store, name]],
        isAuthorManager(store, by),
      ],
      decide([[earlier], [ownRow], [found], [last], tokens, [author]]) {
        if (other !== undefined) assertManager(by, author);
        if (earlier !== undefined) return { result: repeated(earlier, token) };
        const own = ownRow && readToken(ownRow);
        if (own?.stored.uses === 0) throw invitationUsed();
        const ended = tokensToDelete(tokens, token.createdAtMs, token.uses !== undefined);
        if (ended instanceof Problem) throw ended;
        const { user, writes, entries } = ensureUser({ store, name, found, last });
        const added = addToken(store, user, lineOf(own, token), token);
        const spent: Query = [tokenSql.spend, [store, tokenHash]];
        return {
          result: undefined,
          writes: () => [
            ...writes,
            [tokenSql.deleteOwn, [store, ended]],
            ...(own?.stored.uses === undefined ? [] : [spent]),
            added.write,
          ],
          entries: [...entries, added.entry],
        };
      },
    });

    /** A token for another user, and one that takes the place of an invitation or a renewable token, is not below it. */
    function lineOf(own: ReturnType<typeof readToken> | undefined, { renewableUntilMs }: OwnToken) {
      if (name !== userName) return null;
      if (own === undefined) return lineBelow(null, parent);
      const { stored, line } = own;
      const isRenewal = stored.renewableUntilMs !== undefined && renewableUntilMs !== undefined;
      return stored.uses !== undefined || isRenewal ? line : lineBelow(line, parent);
    }
  },

  revokeToken: (
    store: number,
    id: string,
    revokedAtMs: number,
    by: Grant | undefined,
    request?: string,
  ) => {
    const range = rangeOf(id);
    const { first, last } = range?.store === store ? range : noTokens;
    return writeOf({
      store,
      by: by?.caller.identified,
      request,
      reads: [
        [tokenSql.findById, [store, first, last]],
        isAuthorManager(store, by?.caller.identified),
      ],
      decide([[row], [author]]) {
        if (row === undefined) return { result: undefined };
        const { record, owner, line } = readRecord(row);
        if (by !== undefined && owner !== by.caller.user) {
          const { identified, scopes } = by.caller;
          const isAllowed = scopes.has('users:write') && isManager(identified, author);
          if (!isAllowed) return { result: undefined };
        } else if (by !== undefined) assertCanRevoke(by, { ...record, line });
        if (record.revokedAtMs !== undefined) return { result: record };
        const tag = formatScopes(record.scopes);
        return {
          result: { ...record, revokedAtMs },
          writes: () => [[tokenSql.revoke, [store, row[1], revokedAtMs]]],
          entries: [{ event: 'token-revoked', owner, name: id, tag }],
        };
      },
    });
  },

  recordUses: (store: number, usedAtMs: number, hashes: readonly Uint8Array[]) =>
    writeOf({
      store,
      withoutLock: true,
      reads: [],
      decide: () => ({
        result: undefined,
        writes: () => [[tokenSql.recordUses, [store, usedAtMs, hashes]]],
      }),
    }),
};

/** The token that an earlier request with the same key has created. Throws if that request was another one. */
function repeated([salt, ...row]: readonly [salt: string, ...TokenRow], wanted: OwnToken) {
  const { stored } = readToken(row);
  const isActive = stateOf(stored, wanted.createdAtMs) === 'active';
  if (isActive && isRepeated(salt, wanted.salt)) return { ...stored, salt };
  throw new Problem(
    'idempotency-key-reused',
    'The "Idempotency-Key" was used for a token that has other terms or has ended. Use a new key.',
  );
}

function addToken(store: number, user: number, line: string | null, token: OwnToken) {
  const { hash, label, createdAtMs, expiresAtMs, renewableUntilMs, uses, salt } = token;
  const scopes = formatScopes(token.scopes);
  const times = [createdAtMs, expiresAtMs ?? null, renewableUntilMs ?? null];
  const values = [store, hash, user, line, scopes, label, ...times, uses ?? null, salt];
  const write: Query = [tokenSql.add, values];
  const name = tokenId(hash, store);
  return { write, entry: { event: 'token-created', owner: user, name, tag: scopes } as const };
}

/** What the two engines do alike: all but to identify a caller. */
type TokenStorage = Omit<IdentityStorage, 'identify'>;

export function openTokens(engine: Engine): TokenStorage {
  return {
    async createToken({ store: storeName, ...token }) {
      const store = await engine.ensureStore(storeName);
      const text = makeToken(store);
      const hash = hashToken(text);
      await engine.write('createToken', store, token, hash);
      return { token: text, id: tokenId(hash, store) };
    },

    createOwnToken: (...args) => engine.write('createOwnToken', ...args),

    async listTokens({ store, user, after = '', limit }) {
      const values = [store, rangeOf(after)?.last ?? noHash, limit];
      const rows = await (user === undefined
        ? engine.read(store, tokenSql.listStore, values)
        : engine.read(store, tokenSql.listUser, [...values, user]));
      return rows.map((row) => readRecord(row).record);
    },

    async revokeToken(id, revokedAtMs, by, request) {
      const store = by?.caller.store ?? rangeOf(id)?.store;
      if (store === undefined) return undefined;
      return engine.write('revokeToken', store, id, revokedAtMs, by, request);
    },

    recordUses: (...args) => engine.write('recordUses', ...args),
  };
}

/** Comes before every hash. */
const noHash = Buffer.alloc(0);
const noTokens = { first: noHash, last: noHash };

/** The record of a token, the number of its user, and its line. */
function readRecord(row: RecordRow): { record: TokenRecord; owner: number; line: string | null } {
  const [number, hash, store, user, role, owner, ...token] = row;
  const { stored, line } = readToken(token);
  return { record: { store, user, role, id: tokenId(hash, number), ...stored }, owner, line };
}

function readToken(row: TokenRow): { stored: StoredToken; line: string | null } {
  const [scopes, label, createdAtMs, ...others] = row;
  const [expiresAt, revokedAt, lastUsedAt, renewableUntil, uses, line] = others;
  const stored = {
    scopes: parseScopes(scopes),
    label,
    createdAtMs,
    expiresAtMs: expiresAt ?? undefined,
    revokedAtMs: revokedAt ?? undefined,
    lastUsedAtMs: lastUsedAt ?? undefined,
    renewableUntilMs: renewableUntil ?? undefined,
    uses: uses ?? undefined,
  };
  return { stored, line };
}
