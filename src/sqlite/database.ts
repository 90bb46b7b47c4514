/**
 * Opens a database file. Throws Refusal if it is unusable or not a Plant Store database.
 */
import { randomUUID } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Refusal, type RefusalKind } from '../refusal.ts';
import { sleepSync } from './sleep.ts';
import { isLocked, isSqliteError, primaryCode, resultCode } from './errors.ts';
import { publishFile, refuseLeftovers, syncFile } from './files.ts';
import { applicationId, migrate, refuseUnusableSchema } from './migrate.ts';
import { readPragma } from './pragma.ts';
import { rewriteWal } from './rewrite-wal.ts';
import { nowMs } from './clock.ts';

/** How long a write waits in the queue and for locks of other processes. */
export const lockTimeoutMs = 5_000;

/** How often to retry to open a locked file. */
const openPollMs = 10;

/** A checkpoint truncates a larger WAL to this size (PRAGMA journal_size_limit). */
export const walLimitBytes = 64 * 1024 * 1024;

export interface OpenOptions {
  /** Whether to create a missing file. */
  create: boolean;
  /** How long to wait for locks of other processes. */
  maxLockWaitMs?: number;
  /** Called if a migration has to wait longer, which then continues to wait. Without it, opening fails. */
  onLongWait?: (() => void) | undefined;
}

/** Opens the file and migrates its schema. Throws Refusal if the path or the file cannot be used. */
export function openDatabase(path: string, options: OpenOptions): DatabaseSync {
  const { maxLockWaitMs = lockTimeoutMs, onLongWait } = options;
  const wait = { maxLockWaitMs, onLongWait };
  return openWithRetries(path, options, (database) => migrate(database, path, wait));
}

/** Opens the file with its schema unchanged. Throws Refusal if this version cannot use that schema. */
export function openWithoutMigrating(path: string): DatabaseSync {
  const checkSchema = (database: DatabaseSync) => refuseUnusableSchema(database, path);
  return openWithRetries(path, { create: false }, checkSchema);
}

function openWithRetries(
  path: string,
  { create, maxLockWaitMs = lockTimeoutMs }: OpenOptions,
  prepareSchema: (database: DatabaseSync) => void,
): DatabaseSync {
  const deadlineMs = nowMs() + maxLockWaitMs;
  for (;;) {
    const leftMs = Math.max(0, Math.ceil(deadlineMs - nowMs()));
    try {
      return openOnce(path, { create, maxLockWaitMs: leftMs }, prepareSchema);
    } catch (error) {
      // SQLite does not wait while another process switches the file to WAL mode.
      if (!isLocked(error) || nowMs() > deadlineMs) throw refusalFor(error, path);
      sleepSync(openPollMs);
    }
  }
}

/** Throws Refusal, or SQLite's error. */
function openOnce(
  path: string,
  { create, maxLockWaitMs }: { create: boolean; maxLockWaitMs: number },
  prepareSchema: (database: DatabaseSync) => void,
): DatabaseSync {
  refuseUnsafeSqlite(process.versions['sqlite'] ?? '0');
  if (!existsSync(path)) {
    if (!create) throw new Refusal(`There is no database at ${path}.`, { kind: 'no-file' });
    createDatabase(resolveLink(path));
  }
  refuseUnusablePath(path);
  refuseEmptyFile(path);

  const { ino: inodeBefore } = statSync(path);
  const database = new DatabaseSync(path, { timeout: maxLockWaitMs });
  try {
    rewriteWal(path);
    refuseForeignFile(database, path);
    if (statSync(path).ino !== inodeBefore) {
      // A restore held the lock until now, so this connection has the old file open.
      throw new Refusal(`${path} was replaced by a restore just now. Try again.`);
    }
    configure(database);
    prepareSchema(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Before 3.51.3, two connections that write and checkpoint at the same time can corrupt a WAL database
 * (sqlite.org/wal.html, "The WAL-Reset Bug"). Commands that run next to the service do that.
 */
export function refuseUnsafeSqlite(version: string): void {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  if (major * 1_000_000 + minor * 1_000 + patch < 3_051_003) {
    throw new Refusal(
      `This Node includes SQLite ${version}, which can corrupt a database that several processes use. ` +
        'Plant Store needs SQLite 3.51.3 or later: update Node.',
    );
  }
}

/** The target of a symbolic link, which need not exist. */
function resolveLink(path: string): string {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? resolveLink(resolve(dirname(path), readlinkSync(path))) : path;
}

/**
 * Creates the database under a temporary name and renames it when it is complete. So an empty file is never
 * a new database: it has lost its content (docs/decisions/0016-lost-database-file.md).
 */
function createDatabase(path: string): void {
  try {
    refuseLeftovers(path);
  } catch (error) {
    if (existsSync(path)) return; // they belong to a database that another process has just created
    throw error;
  }
  const partial = `${path}.new-${randomUUID()}`;
  try {
    createEmptyFile(partial, path);
    const database = new DatabaseSync(partial);
    try {
      database.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF'); // synced once, below
      migrate(database, path, { maxLockWaitMs: lockTimeoutMs });
    } finally {
      database.close();
    }
    syncFile(partial);
    publishFile(partial, path);
  } catch (error) {
    const isTaken = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    if (!isTaken) throw refusalFor(error, path); // if taken, another process has created it
  } finally {
    rmSync(partial, { force: true });
  }
}

/** Creates it with mode 0600. SQLite would apply the umask, so other users could read it. */
function createEmptyFile(file: string, path: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    throw new Refusal(`Cannot create a database at ${path}: ${reasonOf(error)}.`, {
      kind: 'cannot-create',
      cause: error,
    });
  }
}

/** SQLite would treat it as a new database and delete the WAL next to it. */
function refuseEmptyFile(path: string): void {
  if (statSync(path).size === 0) {
    throw new Refusal(
      `${path} is empty: it has lost its content or is not a database. ` +
        'Restore a backup, or delete the file to start with a new database.',
    );
  }
}

function refuseUnusablePath(path: string): void {
  if (!statSync(path).isFile()) {
    throw new Refusal(`${path} is not a file.`, { kind: 'not-a-file' });
  }
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw new Refusal(
      `Cannot write to ${path} or its folder (${reasonOf(error)}). SQLite needs write access to both.`,
      { kind: 'not-writable', cause: error },
    );
  }
}

function refuseForeignFile(database: DatabaseSync, path: string): void {
  const tables = database.prepare('SELECT count(*) AS count FROM sqlite_schema').get();
  if (tables?.['count'] !== 0 && readPragma(database, 'application_id') !== applicationId) {
    throw new Refusal(`${path} is an SQLite database of another program.`, {
      kind: 'foreign-file',
    });
  }
}

function configure(database: DatabaseSync): void {
  database.exec('PRAGMA journal_mode = WAL');
  database.exec(`PRAGMA journal_size_limit = ${walLimitBytes}`);
  database.exec('PRAGMA wal_autocheckpoint = 0'); // Checkpoint runs them
  database.exec('PRAGMA trusted_schema = OFF');
  // Durability and foreign keys depend on these settings. WAL can be unavailable, and the other two are
  // compile-time defaults that a build of Node can change.
  const expected = { journal_mode: 'wal', synchronous: 2, foreign_keys: 1 };
  for (const [name, value] of Object.entries(expected)) {
    const actual = readPragma(database, name);
    if (actual !== value) {
      throw new Refusal(
        `SQLite runs with ${name} = ${String(actual)}, but Plant Store needs ${value} to keep what it ` +
          'acknowledges. A network file system can cause this: use a local disk.',
      );
    }
  }
}

/** The Refusal for an SQLite error while opening. Returns other errors unchanged. */
function refusalFor(error: unknown, path: string): unknown {
  if (!isSqliteError(error)) return error;
  const [reason, kind] = openingRefusals[primaryCode(error)] ?? [];
  return reason === undefined ? error : new Refusal(`${path} ${reason}`, { kind, cause: error });
}

const openingRefusals: Record<number, readonly [reason: string, kind?: RefusalKind]> = {
  [resultCode.busy]: ['has been locked by another process for too long. Try again.'],
  [resultCode.readOnly]: ['is read-only.', 'not-writable'],
  [resultCode.ioError]: ['cannot be read or written: the disk reports an error. Check the disk.'],
  [resultCode.corrupt]: ['is damaged. Keep this file, and restore a backup to another path.'],
  [resultCode.full]: ['is on a full disk. Free some space and try again.'],
  [resultCode.cannotOpen]: ['cannot be opened. Check the path and its permissions.'],
  [resultCode.notADatabase]: ['is not an SQLite database.', 'foreign-file'],
};

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
      return 'the folder does not exist';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    case 'EROFS':
      return 'the file system is read-only';
    case 'ENOSPC':
      return 'the disk is full';
    default:
      return String(code);
  }
}
