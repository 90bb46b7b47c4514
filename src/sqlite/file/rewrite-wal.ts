/**
 * Rewrites and syncs a leftover WAL before SQLite uses it. After a failed sync, Linux marks unwritten pages as
 * clean: readers see them, but they never reach the disk. Commits appended after such a gap are lost in a power
 * failure (docs/decisions/0017-failed-sync.md).
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readSync,
  realpathSync,
  statSync,
  writeSync,
} from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StorageFailure, Refusal } from '../../refusal.ts';
import { sleepSync } from './locks.ts';
import { systemCode } from '../../shared/system-errors.ts';
import { isLocked } from '../errors.ts';

const chunkBytes = 1024 * 1024;
/** Another process can hold the lock for microseconds, while it does the same. */
const maxAttempts = 4;
const maxPauseMs = 2;

/**
 * Call it before the first read from the database at `path`. If another process has the database open, that process has
 * done this. Throws StorageFailure if the sync fails. Throws Refusal if another process has the database open without a
 * -shm file: SQLite would create a second one, and the processes would overwrite each other's changes.
 */
export function rewriteWal(path: string): void {
  const file = realpathSync(path); // the WAL is next to the file, not next to a symbolic link to it
  const [wal, shm] = [`${file}-wal`, `${file}-shm`];
  const isShmMissing = () => existsSync(wal) && !existsSync(shm);
  let lock: unknown;
  for (let attempt = 0; (hasContent(wal) || isShmMissing()) && attempt < maxAttempts; attempt++) {
    if (attempt > 0) sleepSync(Math.random() * maxPauseMs);
    lock = rewriteIfUnused(path, wal);
    if (lock === undefined) return;
  }
  // Without a lock that was met, another process has begun to do the same: SQLite waits for it.
  if (lock !== undefined && isShmMissing()) {
    throw new Refusal(
      `${path} is locked by another process, and ${shm} is missing. Try again. If no restore is ` +
        'running, put that file back or stop every process that uses the database.',
      { cause: lock },
    );
  }
}

function hasContent(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Returns SQLite's error if another connection has the database open. */
function rewriteIfUnused(path: string, wal: string): unknown {
  // No timeout: if this process has the database open, it would wait for itself.
  using database = new DatabaseSync(path);
  try {
    // The read takes an exclusive lock, which fails if any other connection is open.
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.prepare('SELECT count(*) FROM sqlite_schema').get();
  } catch (error) {
    if (isLocked(error)) return error;
    throw error;
  }
  if (hasContent(wal)) rewriteAndSync(wal); // SQLite deletes the WAL of an empty database
  // Closing checkpoints the WAL, except after a failed sync: SQLite syncs first and gets the error too.
  return undefined;
}

/** Writes the same bytes to the same offsets, so an interruption is harmless. */
function rewriteAndSync(wal: string): void {
  const descriptor = openSync(wal, 'r+');
  try {
    const chunk = Buffer.alloc(chunkBytes);
    for (let at = 0; ;) {
      const bytes = readSync(descriptor, chunk, 0, chunkBytes, at);
      if (bytes === 0) break;
      at += writeSync(descriptor, chunk, 0, bytes, at); // after a short write, the rest is read again
    }
    fsyncSync(descriptor);
  } catch (error) {
    if (systemCode(error) !== 'EIO') throw error;
    throw new StorageFailure(
      `${wal} cannot be synced: the disk reports an error. ` +
        'Keep the files, check the disk, and start again when it works.',
      { cause: error },
    );
  } finally {
    closeSync(descriptor);
  }
}
