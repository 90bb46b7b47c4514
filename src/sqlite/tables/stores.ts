/**
 * The rows of `stores` that a transaction changes. Each is read and written once, however many changes there are.
 */
import { defect } from '../../problem.ts';
import type { Prepare } from '../driver.ts';

interface StoreRow {
  /** Of this file: see the table. */
  readonly number: number;
  /** The largest id that the store has ever held. */
  lastId: number;
  /** That of the last change. */
  position: number;
  isChanged: boolean;
}

export type Stores = ReturnType<typeof openStores>;

export function openStores(prepare: Prepare) {
  const read = prepare<[number: number, lastId: number, position: number]>(
    'SELECT number, last_id, position FROM stores WHERE store = ?',
  );
  const write = prepare('UPDATE stores SET last_id = ?2, position = ?3 WHERE number = ?1');
  const raise = prepare('UPDATE stores SET position = position + ?2 WHERE store = ?1');
  const add = prepare(`
    INSERT INTO stores (store, name) VALUES ((SELECT coalesce(max(store), 0) + 1 FROM stores), ?)
    ON CONFLICT DO NOTHING`);
  const rows = new Map<number, StoreRow>();

  function find(store: number): Readonly<StoreRow> | undefined {
    const known = rows.get(store);
    if (known !== undefined) return known;
    const found = read.get(store);
    if (found === undefined) return undefined;
    const [number, lastId, position] = found;
    const row = { number, lastId, position, isChanged: false };
    rows.set(store, row);
    return row;
  }

  function of(store: number): Readonly<StoreRow> {
    const row = find(store);
    if (row === undefined) throw defect(new Error(`no store ${store}`));
    return row;
  }

  return {
    /** Call it at the start of a transaction: other processes can have changed the rows since. */
    begin(): void {
      rows.clear();
    },

    /** Adds a store unless one has the name. */
    add: (name: string): void => add.run(name),

    /** Writes the row, and leaves it as it was. SQLite would not write an equal one. */
    touch(store: number): void {
      raise.run(store, 1);
      raise.run(store, -1);
    },

    /** The row in this transaction. */
    of,

    find,

    set(store: number, { lastId, position }: Pick<StoreRow, 'lastId' | 'position'>): void {
      Object.assign(of(store), { lastId, position, isChanged: true });
    },

    /** Call it at the end of a transaction. */
    flush(): void {
      for (const { number, lastId, position, isChanged } of rows.values()) {
        if (isChanged) write.run(number, lastId, position);
      }
    },
  };
}
