/**
 * How a file is written so that its name appears only with its complete content.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, rmSync } from 'node:fs';
import { Refusal, type RefusalKind } from '../refusal.ts';
import { isSqliteError, primaryCode, resultCode } from './errors.ts';
import { companionSuffixes } from './files.ts';

/**
 * Runs `work` with a temporary file next to `file`, which `work` publishes, and deletes it afterwards. Only the owner
 * of the file can read it.
 */
export async function withTemporaryFile<T>(
  file: string,
  work: (partial: string) => Promise<T>,
): Promise<T> {
  const partial = `${file}.partial-${randomUUID()}`;
  const remove = () => {
    for (const suffix of ['', ...companionSuffixes]) rmSync(partial + suffix, { force: true });
  };
  try {
    closeSync(openSync(partial, 'wx', 0o600));
    process.once('exit', remove);
    try {
      return await work(partial);
    } finally {
      remove();
      process.off('exit', remove);
    }
  } catch (error) {
    throw refusalFor(error, file);
  }
}

/** The Refusal for an error of a file system or of SQLite that people can understand. */
export function refusalFor(error: unknown, file: string): unknown {
  const systemCode = error instanceof Error && 'code' in error ? String(error.code) : '';
  const [reason, kind] = reasons[isSqliteError(error) ? primaryCode(error) : systemCode] ?? [];
  return reason === undefined ? error : new Refusal(`${file} ${reason}`, { kind, cause: error });
}

const reasons: Record<number | string, readonly [reason: string, kind?: RefusalKind]> = {
  [resultCode.busy]: ['is in use. Stop every process that has it open, and try again.'],
  [resultCode.corrupt]: [
    'is damaged. Move it away, with the files -wal and -shm next to it, and try again.',
  ],
  [resultCode.full]: ['cannot be written: the disk is full. Free some space and try again.'],
  [resultCode.notADatabase]: ['is not an SQLite database. Move it away, and try again.'],
  EEXIST: ['was created by another process, and is never overwritten.', 'file-exists'],
  ENOENT: ['cannot be created: the folder does not exist.'],
  EACCES: ['cannot be created: permission denied.'],
  EROFS: ['cannot be created: the file system is read-only.'],
  ENOSPC: ['cannot be written: the disk is full. Free some space and try again.'],
};
