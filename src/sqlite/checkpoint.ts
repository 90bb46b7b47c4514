/**
 * Checkpoints after commits, in place of SQLite's automatic ones, which hide a failed sync. A partial checkpoint
 * syncs nothing, so a later sync that fails can lose its pages too (docs/decisions/0017-failed-sync.md).
 */
import type { DatabaseSync } from 'node:sqlite';
import { walLimitBytes } from './database.ts';
import { prepare, type Statement } from './driver.ts';

/**
 * At four times SQLite's default, pages that many commits change are copied less often, which makes a commit a
 * quarter cheaper.
 */
const checkpointPages = 4_000;
const pageBytes = 4_096;
/** How far the WAL can exceed its size limit before a checkpoint waits for readers, and for how long. */
const maxExcessPages = (16 * 1024 * 1024) / pageBytes;
const restartTimeoutMs = 100;

/** `walPages` is the size of the WAL, of which `copiedPages` are in the database file as well. */
type Result = [busy: number, walPages: number, copiedPages: number];

export class Checkpoint {
  readonly #database: DatabaseSync;
  readonly #measure: Statement<Result>;
  readonly #copy: Statement<Result>;
  #restartAtPages = walLimitBytes / pageBytes + maxExcessPages;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#measure = prepare(database, 'PRAGMA wal_checkpoint(NOOP)');
    this.#copy = prepare(database, 'PRAGMA wal_checkpoint(PASSIVE)');
  }

  /** Throws SQLite's error. After one of a sync, nothing may be written before a restart of the process. */
  runIfDue(): void {
    const [, walPages, copiedPages] = this.#measure.get() ?? [0, 0, 0];
    if (walPages >= this.#restartAtPages) this.#restart();
    else if (walPages >= checkpointPages && copiedPages < walPages) this.#copy.get();
  }

  /**
   * SQLite restarts the WAL only at a moment when no connection reads from it. With many processes, there may be
   * none. So this blocks writers and waits for current readers: new ones then read only the database file.
   */
  #restart(): void {
    this.#database.exec(`PRAGMA busy_timeout = ${restartTimeoutMs}`);
    const [busy, walPages] = prepare<Result>(
      this.#database,
      'PRAGMA wal_checkpoint(RESTART)',
    ).get() ?? [1, 0];
    // After a failure, waits for more growth first: a reader that hangs must not delay every commit.
    const basePages = busy === 0 ? walLimitBytes / pageBytes : walPages;
    this.#restartAtPages = basePages + maxExcessPages;
  }
}
