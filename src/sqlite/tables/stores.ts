/**
 * The rows of `stores` that a transaction changes. Each is read and written once, however many changes there are.
 */
import { defect } from '../../problem.ts';
import type { Prepare } from '../driver.ts';

class StoreRow {
  /** Whether the transaction has to write the row. */
  isChanged = false;
  #lastId: number;
  readonly #version: number;
  #entries = 0;

  constructor(lastId: number, version: number) {
    this.#lastId = lastId;
    this.#version = version;
  }

  /** The largest id that the store has ever held. */
  get lastId(): number {
    return this.#lastId;
  }

  set lastId(lastId: number) {
    this.#lastId = lastId;
    this.isChanged = true;
  }

  /** The version that the store has after this transaction. Whoever names it raises it, so no other transaction has it. */
  get version(): number {
    this.isChanged = true;
    return this.#version;
  }

  /** The number of the next entry of this transaction in the log. */
  nextEntry(): number {
    return ++this.#entries;
  }
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
    return new StoreRow(lastId, version + 1);
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

    /** The row in this transaction. */
    of(store: number): StoreRow {
      let row = rows.get(store);
      if (row === undefined) rows.set(store, (row = load(store)));
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
