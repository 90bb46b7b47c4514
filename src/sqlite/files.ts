/**
 * The files that belong to a database, and how a complete one gets its name.
 */
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { Refusal } from '../refusal.ts';

/** Suffixes of the files that SQLite creates next to a database. */
export const companionSuffixes = ['-wal', '-shm', '-journal'];

/** SQLite would read the files of a missing database as part of a new one. */
export function refuseLeftovers(file: string): void {
  const left = companionSuffixes.map((suffix) => file + suffix).filter((name) => existsSync(name));
  if (left.length > 0) {
    throw new Refusal(
      `${left.join(' and ')} belong to a database that is no longer at ${file}. ` +
        'Move the database back, or move these files to where it is now, and try again.',
    );
  }
}

/** Gives a complete file its name, and syncs the folder. Throws EEXIST if the name is taken. */
export function publish(partial: string, file: string): void {
  try {
    linkSync(partial, file);
  } catch (error) {
    if (!isLinkUnsupported(error)) throw error;
    copyFileSync(partial, file, constants.COPYFILE_EXCL);
    syncFile(file);
  }
  syncFile(dirname(file));
}

/** Many memory cards and network shares have no hard links. */
function isLinkUnsupported(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(code);
}

export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}
