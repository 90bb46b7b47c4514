/**
 * How many plants a user or a store has, for the quotas. A count is cached with the version of its plants (stores.ts),
 * and is valid as long as that version is the same: other processes increment it too.
 */
import type { DatabaseSync } from 'node:sqlite';
import { Cache } from '../cache.ts';
import type { Problem } from '../problem.ts';
import { quotaProblem, type Quotas } from '../quota.ts';
import { prepare, type Statement } from './statement.ts';
import type { StoreRow } from './stores.ts';

const maxCachedCounts = 10_000;

// Counting stops above the quota. `+ 0`, because of what listSql (plants.ts) says about LIMIT.
export const countSql = {
  user: `
    SELECT count(*) FROM (
      SELECT 1 FROM plants INDEXED BY plants_by_owner WHERE store = ?1 AND owner = ?2 LIMIT ?3 + 0)`,
  // Any index has all plants of a store. This one is the smallest.
  store: `
    SELECT count(*) FROM (
      SELECT 1 FROM plants INDEXED BY plants_by_tag WHERE store = ?1 LIMIT ?2 + 0)`,
};

interface CachedCount {
  /** One more than the quota if there are more plants. */
  count: number;
  version: number;
}

export class PlantCounts {
  readonly #quotas: Quotas;
  readonly #ofUser: Statement<[count: number]>;
  readonly #ofStore: Statement<[count: number]>;
  readonly #cache = new Cache<CachedCount>(maxCachedCounts);
  #isInTransaction = false;

  constructor(database: DatabaseSync, quotas: Quotas) {
    this.#quotas = quotas;
    this.#ofUser = prepare(database, countSql.user);
    this.#ofStore = prepare(database, countSql.store);
  }

  /** Call it at the start of a transaction. */
  begin(): void {
    // The last transaction was rolled back. Another process can have used its versions since.
    if (this.#isInTransaction) this.#cache.clear();
    this.#isInTransaction = true;
  }

  committed(): void {
    this.#isInTransaction = false;
  }

  /** Why the owner can have no other plant; undefined if there is room. */
  problemOf(store: number, owner: number, row: StoreRow): Problem | undefined {
    return quotaProblem(this.#quotas, (scope, quota) => {
      const countedOwner = scope === 'user' ? owner : undefined;
      const key = keyOf(store, countedOwner);
      const version = row.version(countedOwner);
      const cached = this.#cache.get(key);
      if (cached?.version === version) return cached.count;
      const count = this.#count(store, countedOwner, quota + 1);
      this.#cache.set(key, { count, version });
      return count;
    });
  }

  /** Call it after a plant was created or deleted, but before the versions are incremented. */
  add(store: number, owner: number, row: StoreRow, added: 1 | -1): void {
    this.#add(keyOf(store, owner), row.version(owner), added, this.#quotas.perUser);
    this.#add(keyOf(store), row.version(), added, this.#quotas.perStore);
  }

  #add(key: string, version: number, added: 1 | -1, quota = 0): void {
    const cached = this.#cache.get(key);
    // Above the quota, the count is not exact. The old version makes the next create count again.
    if (cached?.version !== version || cached.count > quota) return;
    cached.count += added;
    cached.version++;
  }

  #count(store: number, owner: number | undefined, limit: number): number {
    const row =
      owner === undefined ? this.#ofStore.get(store, limit) : this.#ofUser.get(store, owner, limit);
    return row?.[0] ?? 0;
  }
}

function keyOf(store: number, owner?: number): string {
  return `${store} ${owner ?? ''}`;
}
