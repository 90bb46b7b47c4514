/**
 * Opens a database file of ours, or refuses it with a sentence that a person can act on.
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
import { publish, refuseLeftovers, syncFile } from './files.ts';
import { applicationId, migrate, refuseUnusableSchema } from './migrate.ts';
import { pragma } from './pragma.ts';
import { rewriteWal } from './rewrite-wal.ts';
import { nowMs } from './writes.ts';

/** How long a write waits for its turn and for other processes to end their transactions. */
export const lockTimeoutMs = 5_000;

/** How often a file is tried that could not be opened because of a lock. */
const lockPollMs = 10;

/** The WAL file is cut back to this after a checkpoint, however large a burst made it. */
export const walBytesKept = 64 * 1024 * 1024;

/**
 * Pages in the WAL that make a writer move them to the file: with 4 times SQLite's own 1,000, pages that
 * many commits change are moved once, and a commit is a quarter cheaper.
 */
const walPagesMax = 4_000;

export interface OpenOptions {
  /** Whether a file that does not exist is made. */
  create: boolean;
  /** How long to wait for a lock of another process. */
  lockMs?: number;
  /** Called if a schema must wait for longer. Without it, that is refused. */
  onLongWait?: (() => void) | undefined;
}

/**
 * Opens the file, brings its schema to the newest and returns the connection.
 * Throws Refusal for a place or a file that cannot be used.
 */
export function openDatabase(path: string, options: OpenOptions): DatabaseSync {
  const { lockMs = lockTimeoutMs, onLongWait } = options;
  return openWith(path, options, (database) => migrate(database, path, { lockMs, onLongWait }));
}

/** Opens the file with the schema that it has, which may be an older one or a newer one that can be used. */
export function openAsItIs(path: string): DatabaseSync {
  return openWith(path, { create: false }, (database) => refuseUnusableSchema(database, path));
}

function openWith(
  path: string,
  { create, lockMs = lockTimeoutMs }: OpenOptions,
  prepare: (database: DatabaseSync) => void,
): DatabaseSync {
  const untilMs = nowMs() + lockMs;
  for (;;) {
    try {
      return openOnce(path, { create, lockMs: Math.max(0, Math.ceil(untilMs - nowMs())) }, prepare);
    } catch (error) {
      // SQLite does not wait for a process that brings the file into WAL mode at the same moment.
      if (!isLocked(error) || nowMs() > untilMs) throw refusalFor(error, path);
      sleepSync(lockPollMs);
    }
  }
}

/** Throws SQLite's errors as they are. */
function openOnce(
  path: string,
  { create, lockMs }: { create: boolean; lockMs: number },
  prepare: (database: DatabaseSync) => void,
): DatabaseSync {
  refuseUnsafeSqlite(process.versions['sqlite'] ?? '0');
  if (!existsSync(path)) {
    if (!create) throw new Refusal(`There is no database at ${path}.`);
    createDatabase(targetOf(path));
  }
  refuseUnusablePlace(path);
  refuseEmpty(path);

  const { ino: inodeBefore } = statSync(path);
  const database = new DatabaseSync(path, { timeout: lockMs });
  try {
    rewriteWal(path);
    refuseForeignFile(database, path);
    if (statSync(path).ino !== inodeBefore) {
      // A restore held the lock until here: what is open now is the file that it has set aside.
      throw new Refusal(`${path} was replaced by a restore just now. Try again.`);
    }
    configure(database);
    prepare(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Before 3.51.3, two connections that write and checkpoint at once can corrupt a WAL database
 * (sqlite.org/wal.html, "The WAL-Reset Bug"); the commands do just that beside the server.
 */
export function refuseUnsafeSqlite(version: string): void {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  if (major * 1_000_000 + minor * 1_000 + patch < 3_051_003) {
    throw new Refusal(
      `This Node brings SQLite ${version}, which can corrupt a database that several processes use. ` +
        'Plant Store needs SQLite 3.51.3 or later: update Node.',
    );
  }
}

/** What a link to a file that does not exist yet points to. */
function targetOf(path: string): string {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? targetOf(resolve(dirname(path), readlinkSync(path))) : path;
}

/**
 * Creates a database under a name of its own and gives it its name when it is whole. So a file that is
 * empty was never one that is being created: it has lost its content (decision 16).
 */
function createDatabase(path: string): void {
  try {
    refuseLeftovers(path);
  } catch (error) {
    if (existsSync(path)) return; // another process has created it just now, and they are of that one
    throw error;
  }
  const partial = `${path}.new-${randomUUID()}`;
  try {
    claimFile(partial, path);
    const database = new DatabaseSync(partial);
    try {
      database.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF'); // synced below, once
      migrate(database, path, { lockMs: lockTimeoutMs });
    } finally {
      database.close();
    }
    syncFile(partial);
    publish(partial, path);
  } catch (error) {
    const isTaken = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    if (!isTaken) throw refusalFor(error, path); // else another process was faster
  } finally {
    rmSync(partial, { force: true });
  }
}

/** Made empty before SQLite sees it, so that no moment passes in which others may read it. */
function claimFile(file: string, path: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    throw new Refusal(`Cannot make a database at ${path}: ${reasonOf(error)}.`, {
      kind: 'no-place',
      cause: error,
    });
  }
}

/** SQLite would take it for a new database, and delete the WAL beside it. */
function refuseEmpty(path: string): void {
  if (statSync(path).size === 0) {
    throw new Refusal(
      `${path} is empty: it has lost its content, or is no database. ` +
        'Restore a backup, or delete the file to begin with a new database.',
    );
  }
}

function refuseUnusablePlace(path: string): void {
  if (!statSync(path).isFile()) {
    throw new Refusal(`${path} is not a file.`, { kind: 'not-a-file' });
  }
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw new Refusal(
      `Cannot write to ${path} or the folder that it is in (${reasonOf(error)}). ` +
        'SQLite needs to write both.',
      { kind: 'not-writable', cause: error },
    );
  }
}

function refuseForeignFile(database: DatabaseSync, path: string): void {
  const tables = database.prepare('SELECT count(*) AS count FROM sqlite_schema').get();
  if (tables?.['count'] !== 0 && pragma(database, 'application_id') !== applicationId) {
    throw new Refusal(`${path} is an SQLite database of another program.`, {
      kind: 'foreign-file',
    });
  }
}

function configure(database: DatabaseSync): void {
  database.exec('PRAGMA journal_mode = WAL');
  database.exec(`PRAGMA journal_size_limit = ${walBytesKept}`);
  database.exec(`PRAGMA wal_autocheckpoint = ${walPagesMax}`);
  database.exec('PRAGMA trusted_schema = OFF');
  // What durability and references rest on is asserted, not assumed: all three are compile-time
  // defaults that a build of Node may change.
  const expected = { journal_mode: 'wal', synchronous: 2, foreign_keys: 1 };
  for (const [name, value] of Object.entries(expected)) {
    const actual = pragma(database, name);
    if (actual !== value) {
      throw new Refusal(
        `SQLite runs with ${name} = ${String(actual)} here, and Plant Store needs ${value} ` +
          'to keep what it acknowledges. A network file system can cause this: use a local disk.',
      );
    }
  }
}

/** A driver's error while opening, as a sentence; anything else as it is. */
function refusalFor(error: unknown, path: string): unknown {
  if (!isSqliteError(error)) return error;
  const [reason, kind] = openingRefusals[primaryCode(error)] ?? [];
  return reason === undefined ? error : new Refusal(`${path} ${reason}`, { kind, cause: error });
}

const openingRefusals: Record<number, readonly [reason: string, kind?: RefusalKind]> = {
  [resultCode.busy]: ['is locked by another process for too long. Try again.'],
  [resultCode.readOnly]: ['is read-only.', 'not-writable'],
  [resultCode.ioError]: ['cannot be read or written: the disk reports an error.'],
  [resultCode.corrupt]: ['is damaged. Restore a backup to another place, and keep this file.'],
  [resultCode.full]: ['is on a disk that is full. Free some room and try again.'],
  [resultCode.cannotOpen]: ['cannot be opened. Check the path and its permissions.'],
  [resultCode.notADatabase]: ['is not an SQLite database.', 'foreign-file'],
};

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
      return 'there is no such folder';
    case 'EACCES':
    case 'EPERM':
      return 'permission is denied';
    case 'EROFS':
      return 'the file system is read-only';
    case 'ENOSPC':
      return 'the disk is full';
    default:
      return String(code);
  }
}
