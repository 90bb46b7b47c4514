/**
 * SQLite's errors, distinguished by result code (sqlite.org/rescode.html), never by text.
 */
import { outcomeUnknown, storageFull, storageUnavailable } from '../problem.ts';
import { Refusal } from '../refusal.ts';

export const resultCode = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
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

/** An error of the operating system, as node:fs throws it. */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}

/** The primary result code is the low byte of the extended one. */
export function primaryCode(error: SqliteError): number {
  return error.errcode & 0xff;
}

export type Stage = 'before-commit' | 'commit';

/**
 * The Problem for an error of the driver, of the file system, or for a Refusal. Returns any other unchanged.
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

/** A write beyond the file size limit, and a -shm file that could not grow. Neither leaves unsynced data. */
const harmlessIoErrors = [778, 4_874];
/** Failed syncs of a file and of a directory. */
const syncErrors = [1_034, 1_290];

/** After a failed sync, the content of the disk is unknown (docs/decisions/0017-failed-sync.md). */
export function isFailedSync(error: unknown, stage: Stage): boolean {
  if (!isSqliteError(error) || primaryCode(error) !== resultCode.ioError) return false;
  return stage === 'commit'
    ? !harmlessIoErrors.includes(error.errcode)
    : syncErrors.includes(error.errcode);
}

/** After any other error, the connection must be closed. */
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
