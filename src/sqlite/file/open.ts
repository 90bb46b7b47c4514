/**
 * Opens a database file, or creates it. Throws Refusal if it is unusable or not a Plant Store database.
 */
import { existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { NoDatabase, Refusal } from '../../refusal.ts';
import { readPragma } from '../driver.ts';
import { systemCode } from '../../shared/system-errors.ts';
import { chooseAnother, refusalFor, writingRefusal } from '../errors.ts';
import {
  giveToFolderOwner,
  publishFile,
  refuseLeftovers,
  syncFile,
  TemporaryFile,
} from './files.ts';
import { nowMs, retryWhileLocked } from './locks.ts';
import { applicationId, migrate, openSchemaCheck, type LockWait } from './migrate.ts';
import { realPath, refuseUnusablePath } from './path.ts';
import { rewriteWal } from './rewrite-wal.ts';

/** How long a write waits in the queue and for locks of other processes. */
export const lockTimeoutMs = 5_000;

/** A checkpoint truncates a larger WAL to this size (PRAGMA journal_size_limit). */
export const walLimitBytes = 64 * 1024 * 1024;

export interface OpenOptions extends Partial<LockWait> {
  /** Whether to create a missing file. */
  create: boolean;
  /** Whether to migrate the schema, as by default. Without it, a schema that this version cannot use is refused. */
  migrates?: boolean;
  /** Whether to leave the file as it is, so that a backup stays one that older versions can restore. */
  isUnchanged?: boolean;
}

/** Waits for locks of other processes, by default for 5 seconds. Throws Refusal if the path or the file cannot be used. */
export function openDatabase(path: string, options: OpenOptions): DatabaseSync {
  const { deadlineMs = nowMs() + lockTimeoutMs } = options;
  try {
    // SQLite does not wait while another process switches the file to WAL mode.
    return retryWhileLocked(() => openOnce(path, { ...options, deadlineMs }), deadlineMs);
  } catch (error) {
    throw refusalFor(error, path);
  }
}

/** Throws Refusal, or SQLite's error. */
function openOnce(
  path: string,
  { create, isUnchanged = false, migrates = !isUnchanged, ...wait }: OpenOptions & LockWait,
): DatabaseSync {
  refuseUnsafeSqlite(process.versions['sqlite'] ?? '0');
  if (create && statSync(path, { throwIfNoEntry: false }) === undefined) createDatabase(path);
  refuseMissing(path);
  refuseUnusablePath(path);
  const { ino: inodeBefore, size } = statSync(path);
  // SQLite would treat an empty file as a new database and delete the WAL next to it.
  if (size === 0) {
    throw new Refusal(
      `${path} is empty: it has lost its content or is not a database. ` +
        'Restore a backup, or delete the file to start with a new database.',
    );
  }
  using opening = new DisposableStack();
  const timeout = Math.max(0, Math.ceil(wait.deadlineMs - nowMs()));
  const database = opening.use(new DatabaseSync(path, { timeout }));
  rewriteWal(path);
  refuseForeignFile(database, path);
  if (statSync(path).ino !== inodeBefore) {
    // A restore held the lock until now, so this connection has the old file open.
    throw new Refusal(`${path} was replaced by a restore just now. Try again.`);
  }
  configure(database, isUnchanged ? String(readPragma(database, 'journal_mode')) : 'wal');
  if (migrates) migrate(database, path, wait);
  else openSchemaCheck(database, path)();
  database.exec(`PRAGMA busy_timeout = ${lockTimeoutMs}`); // migrations change it
  opening.move();
  return database;
}

export function refuseMissing(path: string): void {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return;
  throw new NoDatabase(
    `There is no database at ${path}. Run the command in the folder of the database, or set its path with --database.`,
  );
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

/**
 * Creates the database under a temporary name and renames it when it is complete. So an empty file is never
 * a new database: it has lost its content (docs/decisions/0016-lost-database-file.md).
 */
function createDatabase(path: string): void {
  try {
    const file = realPath(path);
    refuseLeftovers(file);
    using partial = new TemporaryFile(file);
    {
      using database = new DatabaseSync(partial.path);
      database.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF'); // synced once, below
      migrate(database, path, { deadlineMs: 0 }); // nobody else has it open
    }
    giveToFolderOwner(partial.path);
    syncFile(partial.path);
    publishFile(partial.path, file);
  } catch (error) {
    // Another process has just created the database, or the files that looked like leftovers.
    if (systemCode(error) === 'EEXIST' || (error instanceof Refusal && existsSync(path))) return;
    throw writingRefusal(error, path, chooseAnother);
  }
}

function refuseForeignFile(database: DatabaseSync, path: string): void {
  const tables = database.prepare('SELECT count(*) AS count FROM sqlite_schema').get();
  if (tables?.['count'] !== 0 && readPragma(database, 'application_id') !== applicationId) {
    throw new Refusal(
      `${path} is an SQLite database of another program. Choose another file with --database.`,
    );
  }
}

function configure(database: DatabaseSync, mode: string): void {
  database.exec(`PRAGMA journal_mode = ${mode}`);
  database.exec(`PRAGMA journal_size_limit = ${walLimitBytes}`);
  database.exec('PRAGMA wal_autocheckpoint = 0'); // checkpoint.ts runs them
  database.exec('PRAGMA trusted_schema = OFF');
  // Durability and foreign keys depend on these settings. WAL can be unavailable, and the other two are
  // compile-time defaults that a build of Node can change.
  const expected = { journal_mode: mode, synchronous: 2, foreign_keys: 1 };
  for (const [name, value] of Object.entries(expected)) {
    const actual = readPragma(database, name);
    if (actual !== value) {
      throw new Refusal(
        `SQLite runs with ${name} = ${String(actual)}, but Plant Store needs ${value} to keep ` +
          'acknowledged changes. A network file system can cause this: use a local disk.',
      );
    }
  }
}
