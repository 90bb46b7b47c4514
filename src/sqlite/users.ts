/**
 * Users and stores in SQLite, for operators.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Identity, Role } from '../access.ts';
import type {
  FoundUser,
  NameQuery,
  StoreRecord,
  UserRecord,
  UserStorage,
} from '../user-storage.ts';
import type { PlantCounts } from './plant-counts.ts';
import { Statements, type Sync } from './driver.ts';

export class Users extends Statements implements Sync<UserStorage> {
  /** Undefined without quotas. */
  readonly #counts: PlantCounts | undefined;
  readonly #listStores = this.prepare<[store: string, lastId: number, users: number]>(`
    SELECT name, last_id,
           (SELECT count(*) FROM users WHERE users.store = stores.store AND removed_at IS NULL)
    FROM stores WHERE name > ? ORDER BY name LIMIT ?`);
  readonly #list = this.prepare<[store: string, user: string, role: Role, tokens: number]>(`
    SELECT stores.name, users.name, users.role,
           (SELECT count(*) FROM tokens INDEXED BY tokens_by_user
            WHERE tokens.store = users.store AND tokens.user = users.user AND revoked_at IS NULL
              AND (expires_at IS NULL OR expires_at > ?4))
    FROM stores JOIN users ON users.store = stores.store
    WHERE stores.name = ?1 AND users.name > ?2 AND removed_at IS NULL
    ORDER BY users.name LIMIT ?3`);
  readonly #find = this.prepare<[store: number, user: number, isRemoved: number]>(`
    SELECT users.store, users.user, users.removed_at IS NOT NULL
    FROM stores JOIN users ON users.store = stores.store
    WHERE stores.name = ? AND users.name = ?`);
  readonly #countPlants = this.prepare<[count: number]>(`
    SELECT count(*) FROM (
      SELECT 1 FROM plants INDEXED BY plants_by_owner WHERE store = ? AND owner = ? LIMIT ?)`);
  readonly #revokeTokens = this.prepare(`
    UPDATE tokens INDEXED BY tokens_by_user SET revoked_at = ?3
    WHERE store = ?1 AND user = ?2 AND revoked_at IS NULL`);
  readonly #endGiven = this.prepare('DELETE FROM shares WHERE store = ? AND owner = ?');
  readonly #endReceived = this.prepare(`
    DELETE FROM shares WHERE (store, owner, user_name) IN (
      SELECT store, owner, user_name FROM shares INDEXED BY shares_by_user
      WHERE store = ?1
        AND user_name = (SELECT name FROM users WHERE users.store = ?1 AND users.user = ?2)
      ORDER BY since, owner LIMIT ?3)`);
  readonly #movePlants = this.prepare(`
    UPDATE plants SET owner = ?3 WHERE store = ?1 AND id IN (
      SELECT id FROM plants INDEXED BY plants_by_owner
      WHERE store = ?1 AND owner = ?2 ORDER BY id LIMIT ?4)
      AND EXISTS (SELECT 1 FROM users WHERE store = ?1 AND user = ?3 AND removed_at IS NULL)`);
  readonly #remove = this.prepare(`
    UPDATE users SET removed_at = coalesce(removed_at, ?3)
    WHERE store = ?1 AND user = ?2
      AND NOT EXISTS (SELECT 1 FROM shares WHERE store = ?1 AND owner = ?2)
      AND NOT EXISTS (SELECT 1 FROM plants INDEXED BY plants_by_owner WHERE store = ?1 AND owner = ?2)`);

  constructor(database: DatabaseSync, counts: PlantCounts | undefined) {
    super(database);
    this.#counts = counts;
  }

  listStores({ after = '', limit }: NameQuery): StoreRecord[] {
    const rows = this.#listStores.all(after, limit);
    return rows.map(([store, lastId, users]) => ({ store, users, lastId }));
  }

  list(name: string, { after = '', limit }: NameQuery): UserRecord[] {
    const rows = this.#list.all(name, after, limit, Date.now());
    return rows.map(([store, user, role, activeTokens]) => ({ store, user, role, activeTokens }));
  }

  find(storeName: string, userName: string): FoundUser | undefined {
    const [store, user, isRemoved] = this.#find.get(storeName, userName) ?? [];
    if (store === undefined || user === undefined) return undefined;
    return { store, user, isRemoved: isRemoved === 1 };
  }

  countPlants({ store, user }: Identity, limit: number): number {
    return this.#countPlants.get(store, user, limit)?.[0] ?? 0;
  }

  endAccess({ store, user }: Identity, revokedAtMs: number, limit: number): number {
    this.#revokeTokens.run(store, user, revokedAtMs);
    const given = this.#endGiven.run(store, user);
    const received = this.#endReceived.run(store, user, limit);
    return Number(given.changes) + Number(received.changes);
  }

  movePlants({ store, user: from }: Identity, to: number, limit: number): number {
    this.#counts?.clear();
    return Number(this.#movePlants.run(store, from, to, limit).changes);
  }

  remove({ store, user }: Identity, removedAtMs: number): boolean {
    if (this.#remove.run(store, user, removedAtMs).changes === 0) return false;
    this.#revokeTokens.run(store, user, removedAtMs);
    return true;
  }
}
