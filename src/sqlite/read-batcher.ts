/**
 * Reads of all requests that arrive in one turn of the event loop share one transaction, which begins at the
 * end of that turn. It first checks whether the file has changed, so every read is as of its request or later.
 */
import type { Connection, OpenConnection } from './connection.ts';

interface Waiting {
  read: () => void;
  reject: (error: unknown) => void;
}

export class ReadBatcher {
  readonly #connection: Connection;
  /** At most one for each request in progress. */
  #waiting: Waiting[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Resolves at the end of this turn. Reads by code that awaits it share the transaction. */
  read<T>(work: (open: OpenConnection) => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    if (this.#waiting.length === 0) setImmediate(() => this.#flush());
    this.#waiting.push({ read: () => resolve(this.#connection.read(work)), reject });
    return promise;
  }

  /** Resolves when no read is pending. */
  async close(): Promise<void> {
    await this.read(() => {}).catch(() => {});
    await new Promise((resolve) => process.nextTick(resolve)); // that ends the transaction
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      this.#connection.beginReads();
      this.#connection.read(({ freshness }) => freshness.refresh());
    } catch (error) {
      for (const { reject } of waiting) reject(error);
      return;
    }
    for (const { read, reject } of waiting) {
      try {
        read();
      } catch (error) {
        reject(error);
      }
    }
    // Ticks run after all promise reactions, including those that these reactions queue.
    queueMicrotask(() => process.nextTick(() => this.#connection.endReads()));
  }
}
