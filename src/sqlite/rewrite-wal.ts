/**
 * Puts the WAL on disk before SQLite relies on it. After a failed sync, Linux marks what it could not
 * write as clean: readers see it, but the disk never gets it. A process that recovers such a WAL appends
 * behind a gap, and a power cut takes all that it acknowledged there (docs/decisions/0017-failed-sync.md).
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
/** Another process that tries at the same moment holds the lock for microseconds, or while it rewrites. */
const triesMaxWithIndex = 4;
const triesMaxWithoutIndex = 200;
const pauseMsMax = 2;

/**
 * Call it before anything is read from the database at `path`. If a WAL was left behind and no process
 * has the database open, it rewrites, syncs and checkpoints the WAL. A process that has it open has done
 * so before. Throws DiskFailure if the sync fails, and Refusal if others have the database open without the
 * index of its WAL: SQLite would make a second one, and each side would write over the other's changes.
 */
export function rewriteWal(path: string): void {
  const file = realpathSync(path); // the WAL is beside the file itself and not beside a link to it
  const [wal, index] = [`${file}-wal`, `${file}-shm`];
  const hasNoIndex = () => existsSync(wal) && !existsSync(index);
  const triesMax = hasNoIndex() ? triesMaxWithoutIndex : triesMaxWithIndex;
  for (let tries = 0; (hasBytes(wal) || hasNoIndex()) && tries < triesMax; tries++) {
    if (tries > 0) sleepSync(Math.random() * pauseMsMax);
    if (rewriteAlone(path, wal)) return;
  }
  if (hasNoIndex()) {
    throw new Refusal(
      `${path} is locked by another process, and ${index} is missing. Try again; if it is not being ` +
        'restored now, put that file back, or stop every process that uses the database.',
    );
  }
}

function hasBytes(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** False if another connection has the database open. */
function rewriteAlone(path: string, wal: string): boolean {
  // No timeout: this process may have it open, and would wait for itself.
  const database = new DatabaseSync(path);
  try {
    // With this, reading takes a lock that no other connection lets through, until it is closed.
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.prepare('SELECT count(*) FROM sqlite_schema').get();
    if (hasBytes(wal)) writeAgain(wal); // SQLite removes the one of an empty database
    return true;
  } catch (error) {
    if (isLocked(error)) return false;
    throw error;
  } finally {
    // Checkpoints the WAL, but not after a failed sync: SQLite syncs first, and gets the error too.
    database.close();
  }
}

/** The same bytes in the same places, so that any part of them on the disk is sound. */
function writeAgain(wal: string): void {
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
      `${wal} cannot be put on disk: the disk reports an error. ` +
        'Look at the disk, keep the files, and start again once it is sound.',
      { cause: error },
    );
  } finally {
    closeSync(descriptor);
  }
}
