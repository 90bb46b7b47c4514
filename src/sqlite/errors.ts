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

/** The extended result code; undefined if it is no error of SQLite. */
function extendedCode(error: unknown): number | undefined {
  const isOfSqlite = error instanceof Error && 'code' in error && error.code === 'ERR_SQLITE_ERROR';
  return isOfSqlite && 'errcode' in error ? Number(error.errcode) : undefined;
}

/** The primary result code: the low byte of the extended one. Undefined if it is no error of SQLite. */
export function primaryCode(error: unknown): number | undefined {
  const code = extendedCode(error);
  return code === undefined ? undefined : code & 0xff;
}

/** The code of an error of the operating system, such as ENOENT, thrown by node:fs; undefined for others. */
export function systemCode(error: unknown): string | undefined {
  const isOfSystem = error instanceof Error && 'syscall' in error && 'code' in error;
  return isOfSystem ? String(error.code) : undefined;
}

/** Whether another connection holds a lock that this one needs. */
export function isLocked(error: unknown): boolean {
  const code = primaryCode(error);
  return code === resultCode.busy || code === resultCode.locked;
}

/** The disk is full: nothing has changed, also at COMMIT. The connection stays open, and reads continue. */
function isFull(error: unknown): boolean {
  return primaryCode(error) === resultCode.full;
}

export type Stage = 'before-commit' | 'commit';

/** Converts an SQLite error, a system error or a Refusal to a Problem. Returns any other error unchanged. */
export function problemOf(error: unknown, stage: Stage): unknown {
  const isOfSqlite = primaryCode(error) !== undefined;
  if (!isOfSqlite && systemCode(error) === undefined && !(error instanceof Refusal)) return error;
  if (isFull(error)) return storageFull(error);
  return stage === 'commit' && !isLocked(error) ? outcomeUnknown(error) : storageUnavailable(error);
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
  const code = extendedCode(error);
  if (code === undefined || primaryCode(error) !== resultCode.ioError) return false;
  return stage === 'commit' ? !harmlessIoErrors.includes(code) : syncErrors.includes(code);
}

/** True after a refusal, a lock or a full disk. After other errors, close the connection. */
export function leavesConnectionUsable(error: unknown): boolean {
  return error instanceof Refusal || isLocked(error) || isFull(error);
}
