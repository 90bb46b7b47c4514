/**
 * Batches reads: all requests that arrive in one iteration of the event loop share one transaction, which begins at the
 * end of the iteration. The transaction first checks for writes of other connections, so no request reads older data.
 */
import type { Connection, OpenConnection } from './connection.ts';

export class ReadBatcher {
  readonly #connection: Connection;
  /** Resolves when the transaction of this iteration has begun; undefined if nothing reads. */
  #begun: Promise<void> | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Reads at the end of this iteration. Reads by code that awaits it share the transaction. */
  read<T>(work: (open: OpenConnection) => T): Promise<T> {
    this.#begun ??= this.#begin();
    return this.#begun.then(() => this.#connection.read(work));
  }

  async #begin(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve)); // cheaper than that of node:timers/promises
    this.#begun = undefined;
    this.#connection.beginReads();
    // Ticks run after all promise reactions, including those that these reactions queue.
    process.nextTick(() => this.#connection.endReads());
  }

  /** Resolves when no read is pending. */
  async close(): Promise<void> {
    await this.read(() => {}).catch(() => {});
    await new Promise((resolve) => process.nextTick(resolve)); // that ends the transaction
  }
}
