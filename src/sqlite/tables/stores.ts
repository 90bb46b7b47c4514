/**
 * The rows of `stores` that a transaction changes. Each is read and written once, however many changes there are.
 */
import { defect } from '../../problem.ts';
import type { Prepare } from '../driver.ts';

interface StoreRow {
  /** The largest id that the store has ever held. */
  lastId: number;
  /** The version that the store has after this transaction. */
  readonly version: number;
  /** Number of changes of this transaction. */
  changes: number;
}

export type Stores = ReturnType<typeof openStores>;

export function openStores(prepare: Prepare) {
  const read = prepare<[lastId: number, version: number]>(
    'SELECT last_id, version FROM stores WHERE store = ?',
  );
  const write = prepare('UPDATE stores SET last_id = ?2, version = ?3 WHERE store = ?1');
  const raise = prepare('UPDATE stores SET version = version + ?2 WHERE store = ?1');
  const rows = new Map<number, StoreRow>();

  function load(store: number): StoreRow {
    const [lastId, version] = read.get(store) ?? [];
    if (lastId === undefined || version === undefined) throw defect(new Error(`no store ${store}`));
    return { lastId, version: version + 1, changes: 0 };
  }

  return {
    /** Call it at the start of a transaction: other processes can have changed the rows since. */
    begin(): void {
      rows.clear();
    },

    /** Writes the row, and leaves it as it was. SQLite would not write an equal one. */
    touch(store: number): void {
      raise.run(store, 1);
      raise.run(store, -1);
    },

    /** The row in this transaction. Its members can be set. */
    of(store: number): StoreRow {
      const row = rows.get(store) ?? load(store);
      rows.set(store, row);
      return row;
    },

    /** Call it at the end of a transaction. Returns the stores that have changed. */
    flush(): number[] {
      const changed = [...rows].filter(([, { changes }]) => changes > 0);
      for (const [store, { lastId, version }] of changed) write.run(store, lastId, version);
      return changed.map(([store]) => store);
    },
  };
}
