/**
 * How many plants a user or a store has, for the quotas. Counts are cached in the writer thread, which adds its own
 * changes to them.
 */
import type { DatabaseSync } from 'node:sqlite';
import { Cache } from '../cache.ts';
import type { Problem } from '../problem.ts';
import { quotaProblem, type Quotas } from '../quota.ts';
import { Statements } from './driver.ts';

const maxCachedCounts = 10_000;

export class PlantCounts extends Statements {
  readonly #quotas: Quotas;
  // Counting stops above the quota. `+ 0`, because of what listSql (plant-lists.ts) says about LIMIT.
  readonly #countOfUser = this.prepare<[count: number]>(`
    SELECT count(*) FROM (
      SELECT 1 FROM plants INDEXED BY plants_by_owner WHERE store = ?1 AND owner = ?2 LIMIT ?3 + 0)`);
  // Any index has all plants of a store. This one is the smallest.
  readonly #countOfStore = this.prepare<[count: number]>(`
    SELECT count(*) FROM (
      SELECT 1 FROM plants INDEXED BY plants_by_tag WHERE store = ?1 LIMIT ?2 + 0)`);
  /** One more than the quota if there are more plants. None is stale: whatever this thread did not do clears them. */
  readonly #cache = new Cache<{ count: number }>(maxCachedCounts);

  constructor(database: DatabaseSync, quotas: Quotas) {
    super(database);
    this.#quotas = quotas;
  }

  /** Call it after a rollback, or if something other than `add` has changed plants. */
  clear(): void {
    this.#cache.clear();
  }

  /** Why the owner can have no other plant; undefined if there is room. */
  problemOf(store: number, owner: number): Problem | undefined {
    return quotaProblem(this.#quotas, (scope, quota) => {
      const user = scope === 'user' ? owner : undefined;
      const count = () => ({ count: this.#count(store, user, quota + 1) });
      return this.#cache.getOrLoad(keyOf(store, user), count).count;
    });
  }

  /** Call it after a plant was created or deleted. */
  add(store: number, owner: number, added: 1 | -1): void {
    this.#add(keyOf(store, owner), added, this.#quotas.perUser);
    this.#add(keyOf(store), added, this.#quotas.perStore);
  }

  #add(key: string, added: 1 | -1, quota = 0): void {
    const cached = this.#cache.get(key);
    if (cached === undefined) return;
    if (cached.count > quota)
      this.#cache.delete(key); // it is not exact
    else cached.count += added;
  }

  #count(store: number, user: number | undefined, limit: number): number {
    const row =
      user === undefined
        ? this.#countOfStore.get(store, limit)
        : this.#countOfUser.get(store, user, limit);
    return row?.[0] ?? 0;
  }
}

function keyOf(store: number, user?: number): string {
  return `${store} ${user ?? ''}`;
}
