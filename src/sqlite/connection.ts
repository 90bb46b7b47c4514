/**
 * A connection to the file that mends itself: after an error that leaves it in doubt it is closed,
 * and the next use opens another. Each thread has its own.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Grant } from '../access.ts';
import { Memory } from '../memory.ts';
import { Problem } from '../problem.ts';
import type { PlantPage } from '../storage.ts';
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
  grants: Memory<Grant>;
  firstPages: Memory<PlantPage>;
  watch: Watch;
}

/** Grants that are kept, and characters of first pages. */
const grantsMax = 10_000;
const firstPagesCharsMax = 8 * 1024 * 1024;

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

  /** Forgets what was read before, because it is no longer so. */
  forget(): void {
    this.#open?.watch.forget();
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
  const grants = new Memory<Grant>(grantsMax);
  const firstPages = new Memory<PlantPage>(firstPagesCharsMax, ({ json }) => json.length);
  return {
    database,
    plants: new Plants(database),
    tokens: new Tokens(database),
    grants,
    firstPages,
    watch: new Watch(database, [grants, firstPages]),
  };
}
