/**
 * Classifies SQLite's errors by result code (sqlite.org/rescode.html), never by message.
 */
import { outcomeUnknown, storageFull, storageUnavailable } from '../problem.ts';
import { Refusal } from '../refusal.ts';

export const resultCode = {
  busy: 5, // SQLITE_BUSY
  locked: 6, // SQLITE_LOCKED
  readOnly: 8, // SQLITE_READONLY
  ioError: 10, // SQLITE_IOERR
  corrupt: 11, // SQLITE_CORRUPT
  full: 13, // SQLITE_FULL, also with ENOSPC
  cannotOpen: 14, // SQLITE_CANTOPEN
  notADatabase: 26, // SQLITE_NOTADB
} as const;

export interface SqliteError extends Error {
  /** Extended result code. */
  errcode: number;
}

export function isSqliteError(error: unknown): error is SqliteError {
  return (
    error instanceof Error &&
    'code' in error &&
    error.code === 'ERR_SQLITE_ERROR' &&
    'errcode' in error
  );
}

/** Whether the error is of the operating system, thrown by node:fs. */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}

/** The primary result code is the low byte of the extended one. */
export function primaryCode(error: SqliteError): number {
  return error.errcode & 0xff;
}

export type Stage = 'before-commit' | 'commit';

/**
 * Converts an SQLite error, a system error or a Refusal to a Problem. Returns any other error unchanged.
 *
 * If the disk is full (SQLITE_FULL), the write is rejected with `storage-full`, also at COMMIT: nothing has changed.
 * The connection stays open, and reads continue.
 */
export function problemOf(error: unknown, stage: Stage): unknown {
  if (error instanceof Refusal || isSystemError(error)) {
    return stage === 'commit' ? outcomeUnknown(error) : storageUnavailable(error);
  }
  if (!isSqliteError(error)) return error;
  if (primaryCode(error) === resultCode.full) {
    return storageFull(error);
  }
  if (stage === 'commit' && !isLocked(error)) {
    return outcomeUnknown(error);
  }
  return storageUnavailable(error);
}

/**
 * SQLITE_IOERR_WRITE, for a write beyond the file size limit, and SQLITE_IOERR_SHMSIZE, for a -shm file that
 * could not grow. Neither leaves unsynced data.
 */
const harmlessIoErrors = [778, 4_874];
/** SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC. */
const syncErrors = [1_034, 1_290];

/** After a failed sync, the contents of the disk are unknown (docs/decisions/0017-failed-sync.md). */
export function isFailedSync(error: unknown, stage: Stage): boolean {
  if (!isSqliteError(error) || primaryCode(error) !== resultCode.ioError) return false;
  return stage === 'commit'
    ? !harmlessIoErrors.includes(error.errcode)
    : syncErrors.includes(error.errcode);
}

/** True after a refusal, a lock or a full disk (SQLITE_FULL). After other errors, close the connection. */
export function leavesConnectionUsable(error: unknown): boolean {
  if (error instanceof Refusal) return true;
  return isLocked(error) || (isSqliteError(error) && primaryCode(error) === resultCode.full);
}

/** Whether another connection holds a lock that this one needs. */
export function isLocked(error: unknown): boolean {
  if (!isSqliteError(error)) return false;
  const code = primaryCode(error);
  return code === resultCode.busy || code === resultCode.locked;
}
