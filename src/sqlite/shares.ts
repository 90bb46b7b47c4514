/**
 * Shares in SQLite. The caller begins and ends transactions.
 */
import type { DatabaseSync } from 'node:sqlite';
import { maxOwnersInReach, type ReceivedShare, type ShareAccess } from '../access.ts';
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
} from '../share-storage.ts';
import { prepare, type Statement } from './statement.ts';

const receivedShares = `
  FROM shares INDEXED BY shares_by_user JOIN users ON users.store = shares.store AND users.user = shares.owner
  WHERE shares.store = :store AND user_name = :user
  ORDER BY since, owner LIMIT ${maxOwnersInReach - 1}`;

export const shareSql = {
  findUser: `
    SELECT user, removed_at IS NOT NULL FROM users
    WHERE store = ? AND name = ?`,
  find: 'SELECT 1 FROM shares WHERE store = ? AND owner = ? AND user_name = ?',
  count: 'SELECT count(*) FROM shares WHERE store = ? AND owner = ?',
  set: `
    INSERT INTO shares (store, owner, user_name, access, since) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET access = excluded.access`,
  end: 'DELETE FROM shares WHERE store = ? AND owner = ? AND user_name = ?',
  reach: `SELECT owner, access ${receivedShares}`,
  ofUser: `
    SELECT * FROM (
      SELECT user_name AS name, access, 0 AS is_received FROM shares
      WHERE store = :store AND owner = :owner AND user_name > :after ORDER BY user_name LIMIT :limit + 1
    ) UNION ALL SELECT * FROM (
      SELECT name, access, 1 FROM (SELECT users.name AS name, access ${receivedShares})
      WHERE name > :after ORDER BY name LIMIT :limit + 1
    ) ORDER BY name, is_received`,
  list: `
    SELECT users.name, user_name, access
    FROM shares JOIN users ON users.store = shares.store AND users.user = shares.owner
    WHERE shares.store = ? AND (owner, user_name) > (?, ?) ORDER BY owner, user_name LIMIT ?`,
};

export class Shares {
  readonly #findUser: Statement<[user: number, isRemoved: number]>;
  readonly #find: Statement;
  readonly #count: Statement<[count: number]>;
  readonly #set: Statement;
  readonly #end: Statement;
  readonly #reach: Statement<[owner: number, access: ShareAccess]>;
  readonly #ofUser: Statement<ShareRow>;
  readonly #list: Statement<[owner: string, user: string, access: ShareAccess]>;

  constructor(database: DatabaseSync) {
    this.#findUser = prepare(database, shareSql.findUser);
    this.#find = prepare(database, shareSql.find);
    this.#count = prepare(database, shareSql.count);
    this.#set = prepare(database, shareSql.set);
    this.#end = prepare(database, shareSql.end);
    this.#reach = prepare(database, shareSql.reach);
    this.#ofUser = prepare(database, shareSql.ofUser);
    this.#list = prepare(database, shareSql.list);
  }

  /** The shares in effect of the user with this name. */
  reachOf(store: number, user: string): ReceivedShare[] {
    return this.#reach.all({ store, user });
  }

  set(store: number, { owner, user, access }: Share, sinceMs: number): boolean {
    const [ownerNumber, isRemoved] = this.#findUser.get(store, owner) ?? [];
    if (ownerNumber === undefined || isRemoved === 1) throw userRemoved();
    const isNew = this.#find.get(store, ownerNumber, user) === undefined;
    const [count = 0] = this.#count.get(store, ownerNumber) ?? [];
    if (isNew && count >= maxGivenShares) throw tooManyShares();
    this.#set.run(store, ownerNumber, user, access, sinceMs);
    return isNew;
  }

  end(store: number, ends: readonly ShareEnds[]): boolean {
    let ended = false;
    for (const { owner, user } of ends) {
      const ownerNumber = this.#numberOf(store, owner);
      if (ownerNumber === undefined) continue;
      if (this.#end.run(store, ownerNumber, user).changes > 0) ended = true;
    }
    return ended;
  }

  of(store: number, user: string, query?: SharesQuery): SharesPage {
    const { after, limit } = rangeOfShares(query);
    const owner = this.#numberOf(store, user) ?? 0;
    return sharesPageOf(user, this.#ofUser.all({ store, user, owner, after, limit }), limit);
  }

  list(store: number, after: ShareEnds | undefined, limit: number): Share[] {
    const owner = after === undefined ? 0 : (this.#numberOf(store, after.owner) ?? 0);
    return this.#list
      .all(store, owner, after?.user ?? '', limit)
      .map(([name, user, access]) => ({ owner: name, user, access }));
  }

  #numberOf(store: number, name: string): number | undefined {
    return this.#findUser.get(store, name)?.[0];
  }
}
