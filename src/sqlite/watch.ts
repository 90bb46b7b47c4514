/**
 * Tells whether anybody has written to the file, so that what was read before can be used again for
 * as long as nobody has.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

interface Forgetful {
  forget(): void;
}

export class Watch {
  /**
   * A number that SQLite changes with each commit of another connection, in whatever process
   * (sqlite.org/pragma.html#pragma_data_version). Asking takes a read transaction, so the answer
   * is true after the question was put, and costs a fraction of any other read.
   */
  readonly #dataVersion: StatementSync;
  readonly #memories: readonly Forgetful[];
  #version: number | undefined;

  /**
   * `memories` hold what was read over `database`, which must never write: a
   * connection is not told of commits of its own.
   */
  constructor(database: DatabaseSync, memories: readonly Forgetful[]) {
    this.#dataVersion = database.prepare('PRAGMA data_version');
    this.#dataVersion.setReturnArrays(true);
    this.#memories = memories;
  }

  /** Forgets what was read before a change. */
  look(): void {
    const [version] = this.#dataVersion.get() as unknown as [number]; // a pragma with one value
    if (version !== this.#version) this.forget();
    this.#version = version;
  }

  forget(): void {
    for (const memory of this.#memories) memory.forget();
  }
}
