/**
 * Tells whether anybody has written to the file, so that what was read before can be used again for
 * as long as nobody has.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Grant } from '../access.ts';
import { Memory } from '../memory.ts';
import type { PlantPage } from '../storage.ts';

/** Grants that are kept, and characters of pages. */
const grantsMax = 10_000;
const pageCharsMax = 8 * 1024 * 1024;
/** What an entry takes besides its text, be it empty. */
const entryChars = 200;

export class Watch {
  /** Hold until a token or a user changes. */
  readonly grants = new Memory<Grant>(grantsMax);
  /** Hold until anything changes. */
  readonly pages = new Memory<PlantPage>(pageCharsMax, ({ json }) => json.length + entryChars);
  /**
   * A number that SQLite changes with each commit of another connection, in whatever process
   * (sqlite.org/pragma.html#pragma_data_version). Asking takes a read transaction, so the answer
   * is true after the question was put, and costs a fraction of any other read.
   */
  readonly #dataVersion: StatementSync;
  readonly #grantChanges: StatementSync;
  #version: unknown;
  #changes: unknown;

  /** `database` must never write: a connection is not told of commits of its own. */
  constructor(database: DatabaseSync) {
    this.#dataVersion = database.prepare('PRAGMA data_version');
    this.#grantChanges = database.prepare('SELECT count FROM grant_changes');
    for (const statement of [this.#dataVersion, this.#grantChanges]) {
      statement.setReturnArrays(true);
    }
  }

  /** Forgets what no longer holds. */
  look(): void {
    const version = valueOf(this.#dataVersion);
    if (version === this.#version) return;
    const changes = valueOf(this.#grantChanges);
    this.pages.forget();
    if (changes !== this.#changes) this.grants.forget();
    // Last: where a question cannot be answered, it is put again.
    this.#version = version;
    this.#changes = changes;
  }
}

/** Of a statement that yields one row with one column. */
function valueOf(statement: StatementSync): unknown {
  return (statement.get() as unknown as [unknown])[0];
}
