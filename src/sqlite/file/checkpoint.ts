/**
 * Checkpoints after commits, in place of SQLite's automatic ones, which hide a failed sync. A partial checkpoint
 * syncs nothing, so a later sync that fails can lose its pages too (docs/decisions/0017-failed-sync.md).
 */
import type { DatabaseSync } from 'node:sqlite';
import { walLimitBytes } from './open.ts';
import { preparerOf } from '../driver.ts';

/**
 * 48 MiB, twelve times SQLite's default: pages that many commits change are copied less often. Creates are 5 to
 * 7 % faster than with a third of this size.
 */
const checkpointPages = 12_000;
const pageBytes = 4_096;
const walLimitPages = walLimitBytes / pageBytes;
/** While a backup reads its snapshot, a checkpoint takes a millisecond and copies nothing: not with every commit. */
const retryPages = 1_000;
/** How far the WAL can exceed its size limit before a checkpoint waits for readers, and for how long. */
const maxExcessPages = (16 * 1024 * 1024) / pageBytes;
const restartTimeoutMs = 25;

/** `walPages` is the size of the WAL, of which `copiedPages` are in the database file as well. */
type Result = [busy: number, walPages: number, copiedPages: number];

/**
 * Returns a function that checkpoints if the WAL is long enough. The function throws SQLite's error. After a
 * failed sync, nothing may be written until the process restarts.
 */
export function openCheckpoint(database: DatabaseSync): () => void {
  const prepare = preparerOf(database);
  const measure = prepare<Result>('PRAGMA wal_checkpoint(NOOP)');
  const copy = prepare<Result>('PRAGMA wal_checkpoint(PASSIVE)');
  const restart = prepare<Result>('PRAGMA wal_checkpoint(RESTART)');
  let copyAtPages = checkpointPages;
  let restartAtPages = walLimitPages + maxExcessPages;

  /**
   * SQLite restarts the WAL only when no connection reads from it, which may never happen with many processes. So this
   * waits for current readers, while new ones read only the database file.
   */
  function waitAndRestart(walPages: number): void {
    database.exec(`PRAGMA busy_timeout = ${restartTimeoutMs}`);
    const [busy] = restart.get() ?? [1]; // without sizes while another process checkpoints
    // After a failure, waits for more growth first: a reader that hangs must not delay every commit.
    restartAtPages = (busy === 0 ? walLimitPages : walPages) + maxExcessPages;
  }

  return () => {
    const [, walPages, copiedPages] = measure.get() ?? [0, 0, 0];
    if (walPages < checkpointPages) copyAtPages = checkpointPages;
    if (walPages >= restartAtPages) waitAndRestart(walPages);
    else if (walPages >= copyAtPages && copiedPages < walPages) {
      copy.get();
      copyAtPages = walPages + retryPages;
    }
  };
}
