/**
 * Removes changes that are too old from the log (log/retention.ts), on both engines.
 */
import { randomInt } from 'node:crypto';
import { maxPosition, maxRemovedChanges, type ChangeLog } from '../log/change-log.ts';
import { sql, type Query } from './statement.ts';
import { writeOf, type Engine, type Write } from './write.ts';

/** Stores that a step of a removal checks, with a statement for each. */
const maxCheckedStores = 100;

export const retentionSql = {
  listStores: sql<readonly [store: number]>`
    SELECT store FROM plant_store.stores WHERE store >= $1 ORDER BY store LIMIT ${maxCheckedStores}`,
  readClock: sql<readonly [confirmedMs: number, aheadSinceMs: number | null]>`
    SELECT confirmed_at, ahead_since FROM plant_store.retention WHERE id = 1`,
  setClock: sql`
    UPDATE plant_store.retention SET confirmed_at = greatest(confirmed_at, $1), ahead_since = $2
    WHERE id = 1`,
  epoch: sql<readonly [epoch: number]>`
    SELECT epoch FROM plant_store.retention WHERE id = 1`,
  setEpoch: sql`UPDATE plant_store.retention SET epoch = $1 WHERE id = 1`,
  oldest: sql<readonly [position: number, at: number]>`
    SELECT position, at FROM plant_store.changes
    WHERE changes.store = $1 AND changes.position BETWEEN 1 AND ${maxPosition}
    ORDER BY changes.position LIMIT $2`,
  remove: sql`
    DELETE FROM plant_store.changes
    WHERE changes.store = $1 AND changes.position BETWEEN 1 AND $2`,
};

export const retentionWrites = {
  /** Up to `maxRemovedChanges`, and none before an earlier one. Its result is their number. */
  removeOldChanges: (store: number, beforeMs: number) =>
    writeOf({
      store,
      withoutLock: true,
      reads: [[retentionSql.oldest, [store, maxRemovedChanges]]],
      decide([changes]) {
        const kept = changes.findIndex(([, atMs]) => atMs >= beforeMs);
        const old = kept === -1 ? changes : changes.slice(0, kept);
        const [last] = old.at(-1) ?? [];
        if (last === undefined) return { result: 0 };
        return { result: old.length, writes: () => [[retentionSql.remove, [store, last]]] };
      },
    }),

  setClock: (confirmedMs: number, aheadSinceMs: number | undefined) =>
    update([retentionSql.setClock, [confirmedMs, aheadSinceMs]]),

  /** For a restored backup: cursors from before it are no longer valid. */
  beginEpoch: () => update([retentionSql.setEpoch, [randomInt(2 ** 48 - 1)]]),
};

/** Changes the row of the database, which belongs to no store. */
function update(query: Query): Write<undefined> {
  const decide = () => ({ result: undefined, writes: () => [query] });
  return writeOf({ store: undefined, withoutLock: true, reads: [], decide });
}

export function openRetention(
  engine: Engine,
): Pick<ChangeLog, 'removeOld' | 'readClock' | 'setClock'> {
  return {
    async removeOld(beforeMs, from) {
      const stores = await engine.read(undefined, retentionSql.listStores, [from]);
      for (const [store] of stores) {
        const [oldest] = await engine.read(store, retentionSql.oldest, [store, 1]);
        if (oldest === undefined || oldest[1] >= beforeMs) continue;
        const removed = await engine.write('removeOldChanges', store, beforeMs);
        if (removed === maxRemovedChanges) return store;
      }
      const last = stores.at(-1)?.[0];
      return last === undefined ? undefined : last + 1;
    },

    async readClock() {
      const [row] = await engine.read(undefined, retentionSql.readClock, []);
      const [confirmedMs = 0, aheadSinceMs] = row ?? [];
      return { confirmedMs, aheadSinceMs: aheadSinceMs ?? undefined };
    },

    setClock: ({ confirmedMs, aheadSinceMs }) =>
      engine.write('setClock', confirmedMs, aheadSinceMs),
  };
}
