/**
 * Rewrites and syncs the WAL before SQLite recovers it. After a failed sync, Linux marks unwritten pages as
 * clean: readers see them, but they never reach the disk. Commits appended after such a gap are lost in a power
 * cut (docs/decisions/0017-failed-sync.md).
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
import { DiskFailure, Refusal } from '../refusal.ts';
import { sleepSync } from './sleep.ts';
import { isLocked } from './errors.ts';

const chunkBytes = 1024 * 1024;
/** Another process can hold the lock, for microseconds while it checks or for longer while it rewrites. */
const attemptsMaxWithIndex = 4;
const attemptsMaxWithoutIndex = 200;
const pauseMsMax = 2;

/**
 * Call it before the first read from the database at `path`. If no process has the database open, it rewrites,
 * syncs and checkpoints a WAL that was left behind. Otherwise one of those processes has done so.
 *
 * Throws DiskFailure if the sync fails. Throws Refusal if another process has the database open and the index
 * of the WAL is missing: SQLite would create a second one, and the processes would overwrite each other's
 * changes.
 */
export function rewriteWal(path: string): void {
  const file = realpathSync(path); // the WAL is next to the file itself, not next to a link to it
  const [wal, index] = [`${file}-wal`, `${file}-shm`];
  const isIndexMissing = () => existsSync(wal) && !existsSync(index);
  const attemptsMax = isIndexMissing() ? attemptsMaxWithoutIndex : attemptsMaxWithIndex;
  for (let at = 0; (hasContent(wal) || isIndexMissing()) && at < attemptsMax; at++) {
    if (at > 0) sleepSync(Math.random() * pauseMsMax);
    if (rewriteIfUnused(path, wal)) return;
  }
  if (isIndexMissing()) {
    throw new Refusal(
      `${path} is locked by another process, and ${index} is missing. Try again. If no restore is ` +
        'running, put that file back or stop every process that uses the database.',
    );
  }
}

function hasContent(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Returns false if another connection has the database open. */
function rewriteIfUnused(path: string, wal: string): boolean {
  // No timeout: this process can have the database open, and would wait for itself.
  const database = new DatabaseSync(path);
  try {
    // The read takes an exclusive lock, which fails if any other connection is open.
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.prepare('SELECT count(*) FROM sqlite_schema').get();
    if (hasContent(wal)) rewriteAndSync(wal); // SQLite deletes the WAL of an empty database
    return true;
  } catch (error) {
    if (isLocked(error)) return false;
    throw error;
  } finally {
    // This checkpoints the WAL, except after a failed sync: SQLite syncs first and gets the error too.
    database.close();
  }
}

/** Writes the same bytes in place, so an interruption does no harm. */
function rewriteAndSync(wal: string): void {
  const descriptor = openSync(wal, 'r+');
  try {
    const chunk = Buffer.alloc(chunkBytes);
    for (let at = 0; ;) {
      const bytes = readSync(descriptor, chunk, 0, chunkBytes, at);
      if (bytes === 0) break;
      at += writeSync(descriptor, chunk, 0, bytes, at); // the rest of a short write is read again
    }
    fsyncSync(descriptor);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EIO')) throw error;
    throw new DiskFailure(
      `${wal} cannot be synced: the disk reports an error. ` +
        'Keep the files, check the disk, and start again when it works.',
      { cause: error },
    );
  } finally {
    closeSync(descriptor);
  }
}
