/**
 * Users and stores in SQLite, for operators. The caller begins and ends transactions.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Identity, Role } from '../access.ts';
import type { FoundUser, NameQuery, StoreRecord, UserRecord } from '../user-storage.ts';
import { prepare, type Statement } from './statement.ts';
import type { Stores } from './stores.ts';

export const userSql = {
  listStores: `
    SELECT name, last_id,
           (SELECT count(*) FROM users WHERE users.store = stores.store AND removed_at IS NULL)
    FROM stores WHERE name > ? ORDER BY name LIMIT ?`,
  listUsers: `
    SELECT stores.name, users.name, users.role,
           (SELECT count(*) FROM tokens INDEXED BY tokens_by_user
            WHERE tokens.store = users.store AND tokens.user = users.user AND revoked_at IS NULL
              AND (expires_at IS NULL OR expires_at > ?4))
    FROM stores JOIN users ON users.store = stores.store
    WHERE stores.name = ?1 AND users.name > ?2 AND removed_at IS NULL
    ORDER BY users.name LIMIT ?3`,
  find: `
    SELECT users.store, users.user, users.removed_at IS NOT NULL
    FROM stores JOIN users ON users.store = stores.store
    WHERE stores.name = ? AND users.name = ?`,
  countPlants: `
    SELECT count(*) FROM (
      SELECT 1 FROM plants INDEXED BY plants_by_owner WHERE store = ? AND owner = ? LIMIT ?)`,
  revokeTokens: `
    UPDATE tokens INDEXED BY tokens_by_user SET revoked_at = ?3
    WHERE store = ?1 AND user = ?2 AND revoked_at IS NULL`,
  endGiven: `
    DELETE FROM shares WHERE store = ? AND owner = ?`,
  endReceived: `
    DELETE FROM shares WHERE (store, owner, user_name) IN (
      SELECT store, owner, user_name FROM shares INDEXED BY shares_by_user
      WHERE store = ?1
        AND user_name = (SELECT name FROM users WHERE users.store = ?1 AND users.user = ?2)
      ORDER BY since, owner LIMIT ?3)`,
  movePlants: `
    UPDATE plants SET owner = ?3 WHERE store = ?1 AND id IN (
      SELECT id FROM plants INDEXED BY plants_by_owner
      WHERE store = ?1 AND owner = ?2 ORDER BY id LIMIT ?4)
      AND EXISTS (SELECT 1 FROM users WHERE store = ?1 AND user = ?3 AND removed_at IS NULL)`,
  remove: `
    UPDATE users SET removed_at = coalesce(removed_at, ?3)
    WHERE store = ?1 AND user = ?2
      AND NOT EXISTS (SELECT 1 FROM shares WHERE store = ?1 AND owner = ?2)
      AND NOT EXISTS (SELECT 1 FROM plants INDEXED BY plants_by_owner WHERE store = ?1 AND owner = ?2)`,
};

export class Users {
  readonly #stores: Stores;
  readonly #listStores: Statement<[store: string, lastId: number, users: number]>;
  readonly #listUsers: Statement<[store: string, user: string, role: Role, tokens: number]>;
  readonly #find: Statement<[store: number, user: number, isRemoved: number]>;
  readonly #countPlants: Statement<[count: number]>;
  readonly #revokeTokens: Statement;
  readonly #endGiven: Statement;
  readonly #endReceived: Statement;
  readonly #movePlants: Statement;
  readonly #remove: Statement;

  constructor(database: DatabaseSync, stores: Stores) {
    this.#stores = stores;
    this.#listStores = prepare(database, userSql.listStores);
    this.#listUsers = prepare(database, userSql.listUsers);
    this.#find = prepare(database, userSql.find);
    this.#countPlants = prepare(database, userSql.countPlants);
    this.#revokeTokens = prepare(database, userSql.revokeTokens);
    this.#endGiven = prepare(database, userSql.endGiven);
    this.#endReceived = prepare(database, userSql.endReceived);
    this.#movePlants = prepare(database, userSql.movePlants);
    this.#remove = prepare(database, userSql.remove);
  }

  listStores({ after = '', limit }: NameQuery): StoreRecord[] {
    const rows = this.#listStores.all(after, limit);
    return rows.map(([store, lastId, users]) => ({ store, users, lastId }));
  }

  listUsers(name: string, { after = '', limit }: NameQuery): UserRecord[] {
    const rows = this.#listUsers.all(name, after, limit, Date.now());
    return rows.map(([store, user, role, activeTokens]) => ({ store, user, role, activeTokens }));
  }

  find(storeName: string, userName: string): FoundUser | undefined {
    const [store, user, isRemoved] = this.#find.get(storeName, userName) ?? [];
    if (store === undefined || user === undefined) return undefined;
    return { store, user, isRemoved: isRemoved === 1 };
  }

  countPlants({ store, user }: Identity, limit: number): number {
    const [count = 0] = this.#countPlants.get(store, user, limit) ?? [];
    return count;
  }

  endAccess({ store, user }: Identity, revokedAtMs: number, limit: number): number {
    this.#revokeTokens.run(store, user, revokedAtMs);
    const given = this.#endGiven.run(store, user);
    const received = this.#endReceived.run(store, user, limit);
    return Number(given.changes) + Number(received.changes);
  }

  movePlants({ store, user: from }: Identity, to: number, limit: number): number {
    const moved = Number(this.#movePlants.run(store, from, to, limit).changes);
    if (moved === 0) return 0;
    const row = this.#stores.loadRow(store);
    for (const owner of [from, to]) row.incrementVersions(owner);
    return moved;
  }

  remove({ store, user }: Identity, removedAtMs: number): boolean {
    if (this.#remove.run(store, user, removedAtMs).changes === 0) return false;
    this.#revokeTokens.run(store, user, removedAtMs);
    return true;
  }
}
