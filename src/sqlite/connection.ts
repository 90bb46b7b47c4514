/**
 * A connection to the file that mends itself: after an error that leaves it in doubt it is closed,
 * and the next use opens another. Each thread has its own.
 */
import type { DatabaseSync } from 'node:sqlite';
import { storageUnavailable } from '../problem.ts';
import { openDatabase, type OpenOptions } from './database.ts';
import { isDiskFailure, isLocked, leavesConnectionSound, problemOf, type Stage } from './errors.ts';
import { Plants } from './plants.ts';
import { Tokens } from './tokens.ts';
import { Watch } from './watch.ts';
import { nowMs } from './writes.ts';

export interface Tables {
  plants: Plants;
  tokens: Tokens;
}

interface Open extends Tables {
  database: DatabaseSync;
  watch: Watch;
}

/** How often a writer asks for the lock that another process holds. */
const lockPollMs = 0.25;
const nobodyWakes = new Int32Array(new SharedArrayBuffer(4));

export class Connection {
  readonly #path: string;
  readonly #cacheKiB: number;
  #open: Open | undefined;
  #diskFailure: unknown;

  /** `cacheKiB` is what it may keep of the file in memory; it takes no more than it reads. */
  constructor(path: string, cacheKiB: number) {
    this.#path = path;
    this.#cacheKiB = cacheKiB;
  }

  /** Opens the file now and not with the first use. Throws Refusal where it cannot be used. */
  open(options: OpenOptions): void {
    this.#open = this.#openWith(options);
  }

  /** Runs reads, each a statement of its own. */
  read<T>(work: (open: Open) => T): T {
    try {
      return work(this.#opened());
    } catch (error) {
      throw this.#failed(error, 'before-commit');
    }
  }

  /** The error after which nothing is written any more, if there was one. */
  get diskFailure(): unknown {
    return this.#diskFailure;
  }

  /**
   * Runs `work` in one transaction; when this returns, its commit is on disk. Waits for the lock of
   * other processes until `untilMs` of nowMs().
   */
  write<T>(work: (tables: Tables) => T, untilMs: number): T {
    if (this.#diskFailure !== undefined) throw storageUnavailable(this.#diskFailure);
    let stage: Stage = 'before-commit';
    try {
      const opened = this.#opened();
      begin(opened.database, untilMs);
      const result = work(opened);
      stage = 'commit';
      opened.database.exec('COMMIT');
      return result;
    } catch (error) {
      if (isDiskFailure(error, stage)) this.#diskFailure = error;
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
      this.#open ??= this.#openWith({ create: false });
      return this.#open;
    } catch (error) {
      throw storageUnavailable(error);
    }
  }

  #openWith(options: OpenOptions): Open {
    const database = openDatabase(this.#path, options);
    database.exec(`PRAGMA cache_size = -${this.#cacheKiB}`);
    return {
      database,
      plants: new Plants(database),
      tokens: new Tokens(database),
      watch: new Watch(database),
    };
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

/**
 * Waits for the lock that other processes hold. SQLite would wait too, but in sleeps of up to 100 ms,
 * in which the others take the lock again and again: with several workers that write at full load,
 * one would starve. Blocks the thread that it is called on.
 */
function begin(database: DatabaseSync, untilMs: number): void {
  database.exec('PRAGMA busy_timeout = 0');
  for (;;) {
    try {
      // IMMEDIATE: a read that turns into a write later is refused whatever the timeout.
      database.exec('BEGIN IMMEDIATE');
      return;
    } catch (error) {
      if (!isLocked(error) || nowMs() > untilMs) throw error;
      Atomics.wait(nobodyWakes, 0, 0, lockPollMs);
    }
  }
}
