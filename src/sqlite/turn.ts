/**
 * Requests that come in one turn of the event loop find their callers together, at its end: one
 * transaction, one check whether the file has changed, and in the same transaction all that they read
 * next. The check comes after each of them, so that what they read is as of then or later.
 */
import type { Connection, Open } from './connection.ts';

interface Waiting {
  read: () => void;
  reject: (error: unknown) => void;
}

export class Turn {
  readonly #connection: Connection;
  /** At most one for each request that is being handled. */
  #waiting: Waiting[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Resolves at the end of this turn; what is read next shares the transaction. */
  read<T>(work: (open: Open) => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    if (this.#waiting.length === 0) setImmediate(() => this.#end());
    this.#waiting.push({ read: () => resolve(this.#connection.read(work)), reject });
    return promise;
  }

  /** Resolves when nobody waits any more. */
  async close(): Promise<void> {
    await this.read(() => {}).catch(() => {});
    await new Promise((resolve) => process.nextTick(resolve)); // that ends the transaction
  }

  #end(): void {
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
    // Ticks come when all reactions to promises have run, and those to these.
    queueMicrotask(() => process.nextTick(() => this.#connection.endReads()));
  }
}
