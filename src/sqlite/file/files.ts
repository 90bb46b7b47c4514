/**
 * The files of a database, and how a file gets its name only with its complete content.
 */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  rmSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { Refusal } from '../../refusal.ts';
import { systemCode } from '../../shared/system-errors.ts';

/** Suffixes of the files that SQLite creates next to a database. */
export const companionSuffixes = ['-wal', '-shm', '-journal'];

/** Ends the name that a database keeps when a restore replaces it. */
export const replacedSuffix = '.before-restore-';
const partialSuffix = '.partial-';

/** Whether a creation or a restore of the database gives its file this second name, or was killed while it did. */
export function isOwnLink(name: string, database: string): boolean {
  return [partialSuffix, replacedSuffix].some((suffix) => name.startsWith(database + suffix));
}

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

/** A file next to `target` until it is disposed, or the process exits. Only its owner can read it. */
export class TemporaryFile implements Disposable {
  readonly path: string;

  constructor(target: string) {
    this.path = target + partialSuffix + randomUUID();
    closeSync(openSync(this.path, 'wx', 0o600));
    process.once('exit', this.#remove);
  }

  readonly #remove = (): void => {
    for (const suffix of ['', ...companionSuffixes]) rmSync(this.path + suffix, { force: true });
  };

  [Symbol.dispose](): void {
    this.#remove();
    process.off('exit', this.#remove);
  }
}

/** Gives a complete file its final name, and syncs the folder. Throws EEXIST if the name exists. */
export function publishFile(partial: string, file: string): void {
  try {
    linkSync(partial, file);
  } catch (error) {
    if (!linkUnsupportedCodes.includes(systemCode(error) ?? '')) throw error;
    copyFileSync(partial, file, constants.COPYFILE_EXCL);
    syncFile(file);
  }
  syncFile(dirname(file));
}

/** The file system has no hard links, like FAT and some network file systems. */
const linkUnsupportedCodes = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
