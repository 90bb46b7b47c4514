/**
 * Shares in SQLite.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Caller, ShareAccess } from '../access.ts';
import { tooManyShares, userRemoved } from '../problem.ts';
import {
  maxGivenShares,
  rangeOfShares,
  sharesPageOf,
  type Share,
  type ShareEnds,
  type ShareRow,
  type SharesPage,
  type SharesQuery,
  type ShareStorage,
} from '../share-storage.ts';
import { receivedShares, type Grants } from './grants.ts';
import { Statements, type Sync } from './driver.ts';

export class Shares extends Statements implements Sync<ShareStorage> {
  readonly #grants: Grants;
  readonly #findUser = this.prepare<[user: number, isRemoved: number]>(
    'SELECT user, removed_at IS NOT NULL FROM users WHERE store = ? AND name = ?',
  );
  readonly #find = this.prepare(
    'SELECT 1 FROM shares WHERE store = ? AND owner = ? AND user_name = ?',
  );
  readonly #count = this.prepare<[count: number]>(
    'SELECT count(*) FROM shares WHERE store = ? AND owner = ?',
  );
  readonly #set = this.prepare(`
    INSERT INTO shares (store, owner, user_name, access, since) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET access = excluded.access`);
  readonly #end = this.prepare(
    'DELETE FROM shares WHERE store = ? AND owner = ? AND user_name = ?',
  );
  readonly #ofUser = this.prepare<ShareRow>(`
    SELECT * FROM (
      SELECT user_name AS name, access, 0 AS is_received FROM shares
      WHERE store = :store AND owner = :owner AND user_name > :after ORDER BY user_name LIMIT :limit + 1
    ) UNION ALL SELECT * FROM (
      SELECT name, access, 1 FROM (SELECT users.name AS name, access ${receivedShares})
      WHERE name > :after ORDER BY name LIMIT :limit + 1
    ) ORDER BY name, is_received`);
  readonly #list = this.prepare<[owner: string, user: string, access: ShareAccess]>(`
    SELECT users.name, user_name, access
    FROM shares JOIN users ON users.store = shares.store AND users.user = shares.owner
    WHERE shares.store = ? AND (owner, user_name) > (?, ?) ORDER BY owner, user_name LIMIT ?`);

  constructor(database: DatabaseSync, grants: Grants) {
    super(database);
    this.#grants = grants;
  }

  set(store: number, { owner, user, access }: Share, sinceMs: number, by?: Caller): boolean {
    this.#grants.callerSince(by?.identified);
    const [ownerNumber, isRemoved] = this.#findUser.get(store, owner) ?? [];
    if (ownerNumber === undefined || isRemoved === 1) throw userRemoved();
    const isNew = this.#find.get(store, ownerNumber, user) === undefined;
    const [count = 0] = this.#count.get(store, ownerNumber) ?? [];
    if (isNew && count >= maxGivenShares) throw tooManyShares();
    this.#set.run(store, ownerNumber, user, access, sinceMs);
    return isNew;
  }

  end(store: number, ends: readonly ShareEnds[], by?: Caller): boolean {
    this.#grants.callerSince(by?.identified);
    const ended = ends.map(({ owner, user }) => {
      const ownerNumber = this.#numberOf(store, owner);
      return ownerNumber !== undefined && this.#end.run(store, ownerNumber, user).changes > 0;
    });
    return ended.includes(true);
  }

  of(store: number, user: string, query?: SharesQuery): SharesPage {
    const { after, limit } = rangeOfShares(query);
    const owner = this.#numberOf(store, user) ?? 0;
    return sharesPageOf(user, this.#ofUser.all({ store, user, owner, after, limit }), limit);
  }

  list(store: number, after: ShareEnds | undefined, limit: number): Share[] {
    const owner = after === undefined ? 0 : (this.#numberOf(store, after.owner) ?? 0);
    const rows = this.#list.all(store, owner, after?.user ?? '', limit);
    return rows.map(([name, user, access]) => ({ owner: name, user, access }));
  }

  #numberOf(store: number, name: string): number | undefined {
    return this.#findUser.get(store, name)?.[0];
  }
}
