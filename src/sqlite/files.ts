/**
 * The files of a database, and how a complete file gets its final name.
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

/** Throws Refusal if files of a missing database are left: SQLite would apply them to a new one. */
export function refuseLeftovers(file: string): void {
  const leftovers = companionSuffixes
    .map((suffix) => file + suffix)
    .filter((name) => existsSync(name));
  if (leftovers.length > 0) {
    throw new Refusal(
      `${leftovers.join(' and ')} belong to a database that is no longer at ${file}. ` +
        'Move the database back, or move these files to where it is now, and try again.',
    );
  }
}

/** Gives a complete file its final name, and syncs the folder. Throws EEXIST if the name exists. */
export function publishFile(partial: string, file: string): void {
  try {
    linkSync(partial, file);
  } catch (error) {
    if (!isLinkUnsupported(error)) throw error;
    copyFileSync(partial, file, constants.COPYFILE_EXCL);
    syncFile(file);
  }
  syncFile(dirname(file));
}

/** Whether the file system has no hard links, like FAT and some network file systems. */
function isLinkUnsupported(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(code);
}

export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
