/**
 * SQLite's errors, told apart by result code (sqlite.org/rescode.html), never by text.
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

/** Of the system, not of SQLite: an error that a function of node:fs throws. */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}

/** The low byte of an extended code is the primary one. */
export function primaryCode(error: SqliteError): number {
  return error.errcode & 0xff;
}

export type Stage = 'before-commit' | 'commit';

/**
 * The Problem that an error of the driver, or a file that is not in its place, means for the request.
 * Any other error passes through as it is.
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

/** Codes of ioError that no failed sync is behind: a limit on the size of a file, no room for the -shm. */
const nothingUnsynced = [778, 4_874];
const syncFailed = [1_034, 1_290];

/** True if nobody knows any more what the disk holds (docs/decisions/0017-failed-sync.md). */
export function isFailedSync(error: unknown, stage: Stage): boolean {
  if (!isSqliteError(error) || primaryCode(error) !== resultCode.ioError) return false;
  return stage === 'commit'
    ? !nothingUnsynced.includes(error.errcode)
    : syncFailed.includes(error.errcode);
}

/** After any error but these the connection is not to be trusted: it is closed, and opened anew. */
export function leavesConnectionSound(error: unknown): boolean {
  if (error instanceof Refusal) return true;
  return isLocked(error) || (isSqliteError(error) && primaryCode(error) === resultCode.full);
}

/** True where another connection holds a lock that this one needs. */
export function isLocked(error: unknown): boolean {
  if (!isSqliteError(error)) return false;
  const code = primaryCode(error);
  return code === resultCode.busy || code === resultCode.locked;
}
