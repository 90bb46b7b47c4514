/**
 * How many plants a user or a store has, for the quotas. Counts are cached in the writer thread, which adds its own
 * changes to them.
 */
import { Cache } from '../../shared/cache.ts';
import type { Quotas } from '../../plants/quota.ts';
import type { Prepare } from '../driver.ts';

const maxCachedCounts = 10_000;

export type PlantCounts = ReturnType<typeof openCounts>;

export function openCounts(prepare: Prepare, quotas: Quotas) {
  // Counting stops above the quota. The comment at listSql (plant-lists.ts) explains `+ 0`.
  const countOfUser = prepare<[count: number]>(`
    SELECT count(*) FROM (
      SELECT 1 FROM plants INDEXED BY plants_by_owner WHERE store = ?1 AND owner = ?2 LIMIT ?3 + 0)`);
  const countOfStore = prepare<[count: number]>(`
    SELECT count(*) FROM (SELECT 1 FROM plants NOT INDEXED WHERE store = ?1 LIMIT ?2 + 0)`);
  /** Stale never: changes that are not made by `add` clear the counts. A count is at most one above the quota. */
  const cache = new Cache<{ count: number }>(maxCachedCounts);

  function addTo(key: string, added: 1 | -1, quota: number): void {
    const cached = cache.get(key);
    if (cached === undefined) return;
    if (cached.count > quota)
      cache.delete(key); // it is not exact
    else cached.count += added;
  }

  return {
    /** Call it after a rollback, or if something other than `add` has changed plants. */
    clear(): void {
      cache.clear();
    },

    /** For the quota of a user, or of the store if `user` is undefined. */
    count(store: number, user: number | undefined, quota: number): number {
      return cache.getOrLoad(keyOf(store, user), () => {
        const [count = 0] =
          (user === undefined
            ? countOfStore.get(store, quota + 1)
            : countOfUser.get(store, user, quota + 1)) ?? [];
        return { count };
      }).count;
    },

    /** Call it after a plant was created or deleted. */
    add(store: number, owner: number, added: 1 | -1): void {
      const { perUser, perStore } = quotas;
      if (perUser !== undefined) addTo(keyOf(store, owner), added, perUser);
      if (perStore !== undefined) addTo(keyOf(store), added, perStore);
    },
  };
}

function keyOf(store: number, user?: number): string {
  return `${store} ${user ?? ''}`;
}
