/**
 * Batches reads: all requests that arrive in one iteration of the event loop share one transaction, which begins
 * at its end. The transaction first checks for writes of other connections, so no request reads older data.
 */
import type { Connection, OpenConnection } from './connection.ts';

interface PendingRead {
  read: () => void;
  reject: (error: unknown) => void;
}

export class ReadBatcher {
  readonly #connection: Connection;
  /** Maximum: one for each request in progress. */
  #pending: PendingRead[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Resolves at the end of this iteration. Reads by code that awaits it share the transaction. */
  read<T>(work: (open: OpenConnection) => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    if (this.#pending.length === 0) setImmediate(() => this.#flush());
    this.#pending.push({ read: () => resolve(this.#connection.read(work)), reject });
    return promise;
  }

  /** Resolves when no read is pending. */
  async close(): Promise<void> {
    await this.read(() => {}).catch(() => {});
    await new Promise((resolve) => process.nextTick(resolve)); // that ends the transaction
  }

  #flush(): void {
    const pending = this.#pending;
    this.#pending = [];
    try {
      this.#connection.beginReads();
    } catch (error) {
      for (const { reject } of pending) reject(error);
      return;
    }
    for (const { read, reject } of pending) {
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
