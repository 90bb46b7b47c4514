/**
 * A connection to the file that mends itself: after an error that leaves it in doubt it is closed,
 * and the next use opens another. Each thread has its own.
 */
import type { DatabaseSync } from 'node:sqlite';
import { Problem } from '../problem.ts';
import { openDatabase, type OpenOptions } from './database.ts';
import { leavesConnectionSound, problemOf, unavailable, type Stage } from './errors.ts';
import { Plants } from './plants.ts';
import { Tokens } from './tokens.ts';
import { Watch } from './watch.ts';

export interface Tables {
  plants: Plants;
  tokens: Tokens;
}

interface Open extends Tables {
  database: DatabaseSync;
  watch: Watch;
}

export class Connection {
  readonly #path: string;
  #open: Open | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Opens the file now and not with the first use. Throws Refusal where it cannot be used. */
  open(options: OpenOptions): void {
    this.#open = open(this.#path, options);
  }

  /** Runs reads, each a statement of its own. */
  read<T>(work: (open: Open) => T): T {
    try {
      return work(this.#opened());
    } catch (error) {
      throw this.#failed(error, 'before-commit');
    }
  }

  /** Runs `work` in one transaction; when this returns, its commit is on disk. */
  write<T>(work: (tables: Tables) => T): T {
    let stage: Stage = 'before-commit';
    try {
      const opened = this.#opened();
      // IMMEDIATE: a read that turns into a write later is refused whatever the timeout.
      opened.database.exec('BEGIN IMMEDIATE');
      const result = work(opened);
      stage = 'commit';
      opened.database.exec('COMMIT');
      return result;
    } catch (error) {
      throw this.#failed(error, stage);
    }
  }

  /** Forgets the pages that were read before: another connection has changed what is in them. */
  forgetPages(): void {
    this.#open?.watch.pages.forget();
  }

  close(): void {
    this.#open?.database.close();
    this.#open = undefined;
  }

  #opened(): Open {
    try {
      this.#open ??= open(this.#path, { create: false });
      return this.#open;
    } catch (error) {
      throw new Problem('storage-unavailable', unavailable, { cause: error });
    }
  }

  /** What to throw for `error`, once the connection is sound again or gone. */
  #failed(error: unknown, stage: Stage): unknown {
    const problem = problemOf(error, stage);
    const { database } = this.#open ?? {};
    try {
      if (database?.isTransaction) database.exec('ROLLBACK');
      if (problem === error || leavesConnectionSound(error)) return problem;
    } catch {
      // A connection that cannot roll back is dropped; closing it ends its transaction.
    }
    // After an I/O error, what the connection holds in memory may differ from what is on disk.
    this.#open = undefined;
    database?.close();
    return problem;
  }
}

function open(path: string, options: OpenOptions): Open {
  const database = openDatabase(path, options);
  return {
    database,
    plants: new Plants(database),
    tokens: new Tokens(database),
    watch: new Watch(database),
  };
}
