/**
 * Errors of SQLite and of the file system, in words that people can act on.
 */
import { Refusal, type RefusalKind } from '../../refusal.ts';
import { primaryCode, resultCode, systemCode } from '../errors.ts';

const reasons: Record<number, readonly [reason: string, kind?: RefusalKind]> = {
  [resultCode.busy]: ['is in use. Stop every process that has it open, and try again.'],
  [resultCode.readOnly]: ['is read-only.', 'not-writable'],
  [resultCode.ioError]: ['cannot be read or written: the disk reports an error. Check the disk.'],
  [resultCode.corrupt]: ['is damaged. Keep this file, and restore a backup to another path.'],
  [resultCode.full]: ['cannot be written: the disk is full. Free some space and try again.'],
  [resultCode.cannotOpen]: ['cannot be opened. Check the path and its permissions.'],
  [resultCode.notADatabase]: ['is not an SQLite database.', 'foreign-file'],
};

/** The Refusal for an SQLite error. Returns other errors unchanged. */
export function refusalFor(error: unknown, path: string): unknown {
  const [reason, kind] = reasons[primaryCode(error) ?? 0] ?? [];
  return reason === undefined ? error : new Refusal(`${path} ${reason}`, { kind, cause: error });
}

/** The Refusal for an error while a file is written. Returns other errors unchanged. */
export function writingRefusal(error: unknown, path: string): unknown {
  const reason = systemReason(error);
  if (reason === undefined) return refusalFor(error, path);
  const kind = systemCode(error) === 'EEXIST' ? 'file-exists' : undefined;
  return new Refusal(`${path} cannot be created: ${reason}.`, { kind, cause: error });
}

const systemReasons: Record<string, string> = {
  EACCES: 'permission denied',
  EEXIST: 'another process has created it',
  ENOENT: 'the folder does not exist',
  ENOSPC: 'the disk is full',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
};

/** What the operating system reports; undefined if it is another error. */
export function systemReason(error: unknown): string | undefined {
  const code = systemCode(error);
  return code === undefined ? undefined : (systemReasons[code] ?? code);
}
