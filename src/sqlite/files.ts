/**
 * Database files as files: what belongs to one, and how a finished one gets its name.
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

/** Files that SQLite keeps beside a database, and takes in when it finds them beside another. */
export const companions = ['-wal', '-shm', '-journal'];

/** What a database that is no longer there has left would be read as part of the new one. */
export function refuseLeftovers(file: string): void {
  const left = companions.map((suffix) => file + suffix).filter((name) => existsSync(name));
  if (left.length > 0) {
    throw new Refusal(
      `${left.join(' and ')} belong to a database that is no longer at ${file}. ` +
        'Move the database back, or them to where it is now, and try again.',
    );
  }
}

/** Gives the finished file its name, unless something has it by now. */
export function publish(partial: string, file: string): void {
  try {
    linkSync(partial, file);
  } catch (error) {
    if (!hasNoLinks(error)) throw error;
    copyFileSync(partial, file, constants.COPYFILE_EXCL);
    syncFile(file);
  }
  syncFile(dirname(file));
}

/** True where the file system knows no hard links, as those of many memory cards and shares. */
function hasNoLinks(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(code);
}

export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}
