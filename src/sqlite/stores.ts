import { maxId } from '../ids.ts';
import { Table } from './table.ts';

/** The largest ids of stores. A transaction reads and writes each once, however many plants it creates. */
export class Stores extends Table {
  readonly #read = this.prepare<[lastId: number]>('SELECT last_id FROM stores WHERE store = ?');
  readonly #write = this.prepare(
    'UPDATE stores SET last_id = ?2 WHERE store = ?1 AND last_id < ?2',
  );
  readonly #lastIds = new Map<number, number>();

  /** Call it at the start of a transaction: other processes can have raised them since. */
  begin(): void {
    this.#lastIds.clear();
  }

  /** Undefined if the store has had the largest id. */
  nextId(store: number): number | undefined {
    const lastId = this.#lastId(store);
    return lastId < maxId ? lastId + 1 : undefined;
  }

  raiseLastId(store: number, id: number): void {
    this.#lastIds.set(store, Math.max(id, this.#lastId(store)));
  }

  /** Call it at the end of a transaction. */
  flush(): void {
    for (const [store, lastId] of this.#lastIds) this.#write.run(store, lastId);
  }

  #lastId(store: number): number {
    const known = this.#lastIds.get(store);
    if (known !== undefined) return known;
    const [lastId = 0] = this.#read.get(store) ?? [];
    this.#lastIds.set(store, lastId);
    return lastId;
  }
}
