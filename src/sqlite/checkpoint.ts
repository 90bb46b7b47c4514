/**
 * Checkpoints after commits, in place of SQLite's automatic ones, which hide a failed sync. A partial checkpoint
 * syncs nothing, so a later sync that fails can lose its pages too (docs/decisions/0017-failed-sync.md).
 */
import { walLimitBytes } from './database.ts';
import { Statements } from './driver.ts';

/**
 * At four times SQLite's default, pages that many commits change are copied less often, which makes a commit a
 * quarter cheaper.
 */
const checkpointPages = 4_000;
const pageBytes = 4_096;
const walLimitPages = walLimitBytes / pageBytes;
/** How far the WAL can exceed its size limit before a checkpoint waits for readers, and for how long. */
const maxExcessPages = (16 * 1024 * 1024) / pageBytes;
const restartTimeoutMs = 100;

/** `walPages` is the size of the WAL, of which `copiedPages` are in the database file as well. */
type Result = [busy: number, walPages: number, copiedPages: number];

export class Checkpoint extends Statements {
  readonly #measure = this.prepare<Result>('PRAGMA wal_checkpoint(NOOP)');
  readonly #copy = this.prepare<Result>('PRAGMA wal_checkpoint(PASSIVE)');
  readonly #restart = this.prepare<Result>('PRAGMA wal_checkpoint(RESTART)');
  #restartAtPages = walLimitPages + maxExcessPages;

  /** Throws SQLite's error. After one of a sync, nothing may be written before a restart of the process. */
  runIfDue(): void {
    const [, walPages, copiedPages] = this.#measure.get() ?? [0, 0, 0];
    if (walPages >= this.#restartAtPages) this.#waitAndRestart();
    else if (walPages >= checkpointPages && copiedPages < walPages) this.#copy.get();
  }

  /**
   * SQLite restarts the WAL only at a moment when no connection reads from it. With many processes, there may be
   * none. So this blocks writers and waits for current readers: new ones then read only the database file.
   */
  #waitAndRestart(): void {
    this.database.exec(`PRAGMA busy_timeout = ${restartTimeoutMs}`);
    const [busy, walPages] = this.#restart.get() ?? [1, 0];
    // After a failure, waits for more growth first: a reader that hangs must not delay every commit.
    this.#restartAtPages = (busy === 0 ? walLimitPages : walPages) + maxExcessPages;
  }
}
