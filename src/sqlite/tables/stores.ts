/**
 * The rows of `stores` that a transaction changes. Each is read and written once, however many changes there are.
 */
import { defect } from '../../problem.ts';
import type { Prepare } from '../driver.ts';

interface StoreRow {
  /** The largest id that the store has ever held. */
  lastId: number;
  version: number;
  /** Number of changes that this transaction has added to the log. */
  entries: number;
  isChanged: boolean;
}

export type Stores = ReturnType<typeof openStores>;

export function openStores(prepare: Prepare) {
  const read = prepare<[lastId: number, version: number]>(
    'SELECT last_id, version FROM stores WHERE store = ?',
  );
  const write = prepare('UPDATE stores SET last_id = ?2, version = ?3 WHERE store = ?1');
  const raise = prepare('UPDATE stores SET version = version + ?2 WHERE store = ?1');
  const rows = new Map<number, StoreRow>();

  function rowOf(store: number): StoreRow {
    let row = rows.get(store);
    if (row === undefined) {
      const [lastId, version] = read.get(store) ?? [];
      if (lastId === undefined || version === undefined)
        throw defect(new Error(`no store ${store}`));
      rows.set(store, (row = { lastId, version, entries: 0, isChanged: false }));
    }
    return row;
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

    /** The row in this transaction. Call `raise` to change it. */
    of: (store: number): Readonly<StoreRow> => rowOf(store),

    /** The row with the version of this transaction, which no other transaction has. */
    raise(store: number): StoreRow {
      const row = rowOf(store);
      if (!row.isChanged) row.version++;
      row.isChanged = true;
      return row;
    },

    /** Call it at the end of a transaction. */
    flush(): void {
      for (const [store, row] of rows) {
        if (row.isChanged) write.run(store, row.lastId, row.version);
      }
    },
  };
}
