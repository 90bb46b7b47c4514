/**
 * The files of a database, and how a file gets its name only with its complete content.
 */
import { randomUUID } from 'node:crypto';
import {
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Refusal } from '../../refusal.ts';
import { systemCode } from '../../shared/system-errors.ts';

/** Suffixes of the files that SQLite creates next to a database. */
export const companionSuffixes = ['-wal', '-shm', '-journal'];

/** Ends the name that a database keeps when a restore replaces it. */
export const replacedSuffix = '.before-restore-';
const partialSuffix = '.partial-';
/** Ends the name of the file to which a backup is restored before it gets its name. */
export const restoredSuffix = '-restored';

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

/**
 * A file next to `target` until it is disposed, or the process exits. Only its owner can read it. Removes those of
 * processes that were killed: their locks have ended. A process id would not show that, because containers share files.
 */
export class TemporaryFile implements Disposable {
  readonly path: string;
  readonly #lock: DatabaseSync;

  constructor(target: string) {
    removeAbandoned(dirname(target));
    const [path, lock] = newLock(target);
    this.path = path;
    this.#lock = lock;
    closeSync(openSync(this.path, 'wx', 0o600));
    process.once('exit', this.#remove);
  }

  readonly #remove = (): void => removeTemporary(this.path);

  [Symbol.dispose](): void {
    this.#remove();
    this.#lock.close();
    process.off('exit', this.#remove);
  }
}

const lockSuffix = '-lock';
const lockName = /\.partial-[\da-f-]{36}-lock$/;

/** Until it is locked, another process can remove it as abandoned: then there is a new one. */
function newLock(target: string): [path: string, lock: DatabaseSync] {
  for (;;) {
    const path = target + partialSuffix + randomUUID();
    closeSync(openSync(path + lockSuffix, 'wx', 0o600));
    const inode = () => statSync(path + lockSuffix, { throwIfNoEntry: false })?.ino;
    const created = inode();
    const lock = lockFile(path + lockSuffix, 1_000); // another process can be looking at it
    if (created !== undefined && created === inode()) return [path, lock];
    removeTemporary(path);
    lock.close();
  }
}

/** Locks a file, which can be new. Throws SQLite's error if another process has the lock. */
export function lockFile(path: string, timeout: number): DatabaseSync {
  using opening = new DisposableStack();
  const lock = opening.use(new DatabaseSync(path, { timeout }));
  lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE'); // nothing is ever written to it
  opening.move();
  return lock;
}

function removeAbandoned(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const { name } = entry;
    if (!lockName.test(name) || !entry.isFile()) continue; // a symbolic link can lead to any file
    const path = join(folder, name.slice(0, -lockSuffix.length));
    try {
      using _ = lockFile(path + lockSuffix, 0);
      removeTemporary(path);
    } catch {
      // It is in use, or belongs to another user.
    }
  }
}

function removeTemporary(path: string): void {
  for (const suffix of ['', ...companionSuffixes, lockSuffix]) {
    rmSync(path + restoredSuffix + suffix, { force: true });
    rmSync(path + suffix, { force: true });
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

/** A database that root creates belongs to the owner of its folder, as whom the service runs. */
export function giveToFolderOwner(path: string): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(realpathSync(path)));
  chownSync(path, uid, gid);
}

/** The file system has no hard links, like FAT and some network file systems. */
const linkUnsupportedCodes = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/** Not of a database in use: closing a descriptor drops the locks that SQLite has on the file (fcntl(2)). */
export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
