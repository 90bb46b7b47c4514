/**
 * Tokens in SQLite, and the users and stores that are created with them.
 */
import { formatScopes, type Role } from '../../access/access.ts';
import { recordOf, type TokenRow } from '../../access/identity-rows.ts';
import type { IdentityStorage, TokenRecord } from '../../access/identity-storage.ts';
import {
  assertCanRevoke,
  lineBelow,
  maxCountedTokens,
  tokensToDelete,
  type CountedToken,
  type OwnToken,
} from '../../access/own-tokens.ts';
import { defect, Problem } from '../../problem.ts';
import { hashToken, makeToken, rangeOf, tokenId } from '../../access/token.ts';
import type { LogEntry } from '../../log/change-log.ts';
import type { Grants } from './grants.ts';
import type { Prepare, Sync } from '../driver.ts';
import { tokenOfRow, type Log } from './log.ts';

const selectRecords = `
  SELECT tokens.store, tokens.hash, tokens.scopes, tokens.label, tokens.created_at, tokens.expires_at,
         tokens.revoked_at, tokens.last_used_at, stores.name, users.name, users.role, tokens.family,
         tokens.user
  FROM tokens JOIN stores USING (store) JOIN users USING (store, user)`;

// The schema enforces the types of rows: its tables are STRICT.
type RecordRow = readonly [
  ...TokenRow,
  store: string,
  user: string,
  role: Role,
  line: string | null,
  userNumber: number,
];

/** The methods of IdentityStorage that need no more than a connection. */
export type TokenStorage = Omit<IdentityStorage, 'identify'>;

/** Also creates users of an identity provider, whose tokens are not stored. */
export interface Tokens extends Sync<TokenStorage> {
  /** Creates the user of a JWT, and the store if needed. Does not change a user who exists. */
  createUser(store: string, user: string, issuedAtMs: number): void;
}

export function openTokens(prepare: Prepare, grants: Grants, log: Log): Tokens {
  const findNames = prepare<[store: number, user: number | null, role: Role | null]>(`
    SELECT stores.store, users.user, users.role
    FROM stores LEFT JOIN users ON users.store = stores.store AND users.name = :user AND removed_at IS NULL
    WHERE stores.name = :store`);
  const addStore = prepare('INSERT INTO stores (name) VALUES (?) ON CONFLICT DO NOTHING');
  // A removed user becomes a new one, who inherits nothing, unless their JWT was issued before the removal.
  const addUser = prepare<[store: number, user: number]>(`
    INSERT INTO users (store, user, name, role)
    SELECT store, coalesce((SELECT max(user) FROM users WHERE users.store = stores.store), 0) + 1,
           :user, coalesce(:role, 'member')
    FROM stores WHERE name = :store
    ON CONFLICT (store, name) DO UPDATE
    SET role = coalesce(:role, iif(removed_at IS NULL, role, 'member')), removed_at = NULL
    WHERE :issuedAtMs IS NULL OR removed_at < :issuedAtMs
    RETURNING store, user`);
  const addToken = prepare(`
    INSERT INTO tokens (hash, store, user, family, scopes, label, created_at, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  const findLine = prepare<[line: string | null]>('SELECT family FROM tokens WHERE hash = ?');
  const countOf = prepare<CountedToken>(`
    SELECT hash, created_at, expires_at, revoked_at FROM tokens INDEXED BY tokens_by_user
    WHERE store = ? AND user = ? ORDER BY hash LIMIT ${maxCountedTokens}`);
  const deleteToken = prepare('DELETE FROM tokens WHERE hash = ?');
  const list = (condition: string) =>
    prepare<RecordRow>(`
      ${selectRecords} WHERE ${condition} ORDER BY tokens.store, tokens.hash LIMIT :limit`);
  const listAll = list('(tokens.store, tokens.hash) > (:afterStore, :after)');
  const listStore = list(
    'tokens.store = (SELECT store FROM stores WHERE name = :store) AND tokens.hash > :after',
  );
  const listUser = list('tokens.store = :store AND tokens.user = :user AND tokens.hash > :after');
  // `:user` is null if the token can be anybody's.
  const findById = prepare<RecordRow>(`
    ${selectRecords}
    WHERE tokens.hash BETWEEN :first AND :last AND tokens.store = :store
      AND (:user IS NULL OR tokens.user = :user)`);
  const revoke = prepare(
    'UPDATE tokens SET revoked_at = ?2 WHERE hash = ?1 AND revoked_at IS NULL',
  );
  const recordUse = prepare(`
    UPDATE tokens SET last_used_at = ?2
    WHERE hash = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)`);

  function insert(
    store: number,
    user: number,
    line: string | null,
    token: OwnToken,
    author: Pick<LogEntry, 'by' | 'request'> = {},
  ): void {
    const { hash, label, createdAtMs, expiresAtMs = null } = token;
    const scopes = formatScopes(token.scopes);
    addToken.run(hash, store, user, line, scopes, label, createdAtMs, expiresAtMs);
    const created = tokenOfRow(store, user, [hash, scopes]);
    log.addUnlessOff(store, { event: 'token-created', ...author, ...created });
  }

  return {
    findNames({ store, user }) {
      const [number, userNumber, role] = findNames.get({ store, user }) ?? [];
      return { store: number, user: userNumber ?? undefined, role: role ?? undefined };
    },

    createUser(store, user, issuedAtMs) {
      addStore.run(store);
      addUser.get({ store, user, role: null, issuedAtMs });
    },

    createToken({ store: storeName, user: userName, role, ...token }) {
      addStore.run(storeName);
      const names = { store: storeName, user: userName };
      const [, , before] = findNames.get(names) ?? [];
      const owner = addUser.get({ ...names, role: role ?? null, issuedAtMs: null });
      if (owner === undefined) throw defect(new Error(`store ${storeName} is missing`));
      const [store, user] = owner;
      if (role !== undefined && (before ?? role) !== role) {
        log.addUnlessOff(store, { event: 'role-changed', owner: user, tag: role });
      }
      const text = makeToken(store);
      const hash = hashToken(text);
      insert(store, user, null, { expiresAtMs: undefined, ...token, hash });
      return { token: text, id: tokenId(hash, store) };
    },

    createOwnToken({ caller, tokenHash, tokenId: id }, token, request) {
      const { store, user, identified } = caller;
      grants.callerSince(identified);
      const [line = null] = findLine.get(tokenHash) ?? [];
      const ended = tokensToDelete(countOf.all(store, user), token.createdAtMs);
      if (ended instanceof Problem) throw ended;
      for (const each of ended) deleteToken.run(each);
      insert(store, user, lineBelow(line, id), token, { by: identified, request });
    },

    listTokens({ store, owner, after, limit }) {
      const { store: afterStore, hash } = after ?? { store: 0, hash: Buffer.alloc(0) };
      const range = { after: hash, limit };
      if (owner !== undefined) {
        const { store: number, user } = owner;
        return listUser.all({ ...range, store: number, user }).map(toRecord);
      }
      if (store === undefined) return listAll.all({ ...range, afterStore }).map(toRecord);
      return listStore.all({ ...range, store }).map(toRecord);
    },

    revokeToken(id, revokedAtMs, by, request) {
      const caller = by?.caller;
      grants.callerSince(caller?.identified);
      const range = rangeOf(id);
      if (range === undefined || range.store !== (caller?.store ?? range.store)) return undefined;
      const row = findById.get({ ...range, user: caller?.user ?? null });
      if (row === undefined) return undefined;
      const record = toRecord(row);
      const { hash } = record.position;
      if (by !== undefined) assertCanRevoke(by, { ...record, line: row[11] });
      if (revoke.run(hash, revokedAtMs).changes > 0) {
        const { store } = record.position;
        const token = { owner: row[12], name: id, tag: formatScopes(record.scopes) };
        const author = { by: caller?.identified, request };
        log.addUnlessOff(store, { event: 'token-revoked', ...author, ...token });
      }
      return { ...record, revokedAtMs: record.revokedAtMs ?? revokedAtMs };
    },

    recordUses(uses) {
      for (const { hash, usedAtMs } of uses) recordUse.run(hash, usedAtMs);
    },
  };
}

function toRecord(row: RecordRow): TokenRecord {
  const [store, user, role] = [row[8], row[9], row[10]];
  return recordOf(row, { store, user, role });
}
