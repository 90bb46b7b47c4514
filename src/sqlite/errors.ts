/**
 * What errors of SQLite and of the file system mean, by their codes (sqlite.org/rescode.html), never by message.
 */
import { outcomeUnknown, storageFull, storageUnavailable } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { systemCode, systemReason } from '../shared/system-errors.ts';

export const resultCode = {
  busy: 5, // SQLITE_BUSY
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

/** Whether another connection holds a lock that this one needs, also as the cause of a Refusal. */
export function isLocked(error: unknown): boolean {
  return primaryCode(error instanceof Refusal ? error.cause : error) === resultCode.busy;
}

/** SQLITE_CONSTRAINT_PRIMARYKEY: the table has a row with this key. Only the statement has failed. */
export function isKeyInUse(error: unknown): boolean {
  return extendedCode(error) === 1_555;
}

/** A page of the file has wrong content. */
export function isDamaged(error: unknown): boolean {
  const code = primaryCode(error);
  return code === resultCode.corrupt || code === resultCode.notADatabase;
}

export type Stage = 'before-commit' | 'commit';

/** Converts an SQLite error, a system error or a Refusal to a Problem. Returns any other error unchanged. */
export function problemOf(error: unknown, stage: Stage): unknown {
  const code = primaryCode(error);
  const isKnown = code !== undefined || systemCode(error) !== undefined;
  if (!isKnown && !(error instanceof Refusal)) return error;
  // Nothing has changed, also at COMMIT. The connection stays open, and reads continue.
  if (code === resultCode.full) return storageFull(error);
  return stage === 'commit' && !isLocked(error) ? outcomeUnknown(error) : storageUnavailable(error);
}

/** SQLITE_IOERR_SHMSIZE: the -shm file could not grow. On a full disk, no database can be opened. */
const shmSizeError = 4_874;
/** That, and SQLITE_IOERR_WRITE, for a write beyond the file size limit. Neither leaves unsynced data. */
const harmlessIoErrors = [778, shmSizeError];
/** SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC. */
const syncErrors = [1_034, 1_290];

/** After a failed sync, the contents of the disk are unknown (docs/decisions/0017-failed-sync.md). */
export function isFailedSync(error: unknown, stage: Stage): boolean {
  const code = extendedCode(error);
  if (code === undefined || primaryCode(error) !== resultCode.ioError) return false;
  return stage === 'commit' ? !harmlessIoErrors.includes(code) : syncErrors.includes(code);
}

export function failedSync(cause: unknown): Refusal {
  const message =
    'The disk reported an error during a write. Acknowledged changes are kept. ' +
    'Check the disk, then start the service again.';
  return new Refusal(message, { cause });
}

export const fixPermissions = 'Fix the permissions, or choose another path with --database.';
export const chooseAnother = 'Choose another path.';

/** In words that people can act on. They follow the path of a file. */
const reasons: Record<number, string> = {
  [resultCode.busy]: 'is in use. Stop every process that has it open, and try again.',
  [resultCode.readOnly]: `is read-only. ${fixPermissions}`,
  [resultCode.ioError]: 'cannot be read or written: the disk reports an error. Check the disk.',
  [resultCode.corrupt]: 'is damaged. Keep this file, and restore a backup to another path.',
  [resultCode.full]: 'cannot be written: the disk is full. Free some space and try again.',
  [resultCode.cannotOpen]: 'cannot be opened. Check the path and its permissions.',
  [resultCode.notADatabase]: 'is not an SQLite database. Choose another file with --database.',
};

/** The Refusal for an error of SQLite or of the file system. Returns other errors unchanged. */
export function refusalFor(error: unknown, path: string): unknown {
  const code = extendedCode(error) === shmSizeError ? resultCode.full : primaryCode(error);
  const reason = reasons[code ?? 0];
  if (reason !== undefined) return new Refusal(`${path} ${reason}`, { cause: error });
  return refusalOf(error, `${path} cannot be opened`, chooseAnother);
}

/** The Refusal for an error while a file is written, with advice. Returns other errors unchanged. */
export function writingRefusal(error: unknown, path: string, advice?: string): unknown {
  if (systemCode(error) === undefined) return refusalFor(error, path);
  const isTaken = systemCode(error) === 'EEXIST';
  return refusalOf(error, `${path} cannot be created`, isTaken ? 'Choose another name.' : advice);
}

function refusalOf(error: unknown, what: string, advice?: string): unknown {
  const reason = systemReason(error, 'the folder does not exist');
  if (reason === undefined) return error;
  const message = `${what}: ${reason}.`;
  return new Refusal(advice === undefined ? message : `${message} ${advice}`, { cause: error });
}
