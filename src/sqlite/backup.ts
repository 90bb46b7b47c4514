/**
 * Copies of a database: taken while others write to it, put back while nobody uses it. Neither ever
 * overwrites a file or leaves half of one under the name that was asked for.
 */
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { Refusal, type RefusalKind } from '../refusal.ts';
import { openAsItIs, openDatabase } from './database.ts';
import { isSqliteError, primaryCode, resultCode } from './errors.ts';
import { companions, publish, refuseLeftovers, syncFile } from './files.ts';
import { applicationId, refuseNewerSchema, versionOf } from './migrate.ts';
import { pragma } from './pragma.ts';
import { schemaDifference } from './schema.ts';
import { rewriteWal } from './rewrite-wal.ts';

/** Told after each step: pages copied, of how many. */
export type OnProgress = (done: number, total: number) => void;

/** Pages that are copied between two calls of OnProgress: 16 MiB. */
const pagesAtOnce = 4_096;

/**
 * Copies the database as it is at this moment to `file`, which must not exist, and checks the copy.
 * The copy is one file that only its owner can read.
 */
export async function backupDatabase(
  path: string,
  file: string,
  onProgress: OnProgress,
): Promise<void> {
  if (existsSync(file)) {
    throw new Refusal(`${file} exists already, and a backup never overwrites.`, {
      kind: 'name-taken',
    });
  }
  refuseLeftovers(file);
  await withPartial(file, async (partial) => {
    const source = openAsItIs(path);
    try {
      await copy(source, path, partial, onProgress);
    } finally {
      source.close();
    }
    publish(partial, file);
  });
}

/**
 * Puts the database of `file` in the place of the one at `path`; that one is kept beside it. Returns
 * the path that it is kept at, or undefined where there was none.
 * Refuses a database that any process has open.
 */
export async function restoreDatabase(
  file: string,
  target: string,
  onProgress: OnProgress,
): Promise<string | undefined> {
  const isThere = existsSync(target);
  const path = isThere ? realpathSync(target) : target; // the file itself and not a link to it
  if (!isThere) refuseLeftovers(path);
  const source = openBackup(file);
  try {
    return await withPartial(path, async (partial) => {
      await copy(source, file, partial, onProgress);
      refuseForeignContent(partial, file); // in the copy, which nobody else can change
      openDatabase(partial, { create: false }).close(); // brings it to the newest schema
      makeOneFile(partial);
      if (isThere) return replace(partial, path);
      publish(partial, path);
      return undefined;
    });
  } finally {
    source.close();
  }
}

function openBackup(file: string): DatabaseSync {
  if (!existsSync(file)) throw new Refusal(`There is no backup at ${file}.`);
  if (!statSync(file).isFile()) throw noBackup(file);
  const source = new DatabaseSync(file, { readOnly: true });
  try {
    const isOurs = pragma(source, 'application_id') === applicationId && versionOf(source) > 0;
    if (!isOurs) throw noBackup(file);
    refuseNewerSchema(source, file);
    return source;
  } catch (error) {
    source.close();
    throw damageOf(error, file);
  }
}

function noBackup(file: string): Refusal {
  return new Refusal(`${file} is no backup of a Plant Store.`, { kind: 'no-backup' });
}

/** A database that SQLite finds whole can still have another schema, or rows that belong to nobody. */
function refuseForeignContent(copied: string, original: string): void {
  using database = new DatabaseSync(copied, { readOnly: true });
  const difference = schemaDifference(database);
  if (difference !== undefined) {
    throw new Refusal(`${original} is no backup of a Plant Store: the database ${difference}.`, {
      kind: 'no-backup',
    });
  }
  const orphan = database.prepare('PRAGMA foreign_key_check').get();
  if (orphan !== undefined) {
    throw new Refusal(
      `${original} is no whole backup: a row of ${String(orphan['table'])} belongs to none of ` +
        `${String(orphan['parent'])}.`,
      { kind: 'no-backup' },
    );
  }
}

/** What is wrong with the original of a copy, where that is what an error tells. */
function damageOf(error: unknown, original: string): unknown {
  if (!isSqliteError(error)) return error;
  switch (primaryCode(error)) {
    case resultCode.notADatabase:
      return noBackup(original);
    case resultCode.corrupt:
      return damaged(original);
    default:
      return error;
  }
}

function damaged(original: string): Refusal {
  return new Refusal(
    `${original} is damaged: SQLite finds no whole database in it. Keep it, and restore a backup that is whole.`,
  );
}

/** Works on a file beside `file`, which is gone afterwards, whatever happens. */
async function withPartial<T>(file: string, work: (partial: string) => Promise<T>): Promise<T> {
  const partial = `${file}.partial-${randomUUID()}`;
  const remove = () => {
    for (const suffix of ['', ...companions]) rmSync(partial + suffix, { force: true });
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

/** Copies the database that was opened from `original`, and checks the copy from end to end. */
async function copy(
  source: DatabaseSync,
  original: string,
  file: string,
  onProgress: OnProgress,
): Promise<void> {
  try {
    await copyPages(source, file, onProgress);
    makeOneFile(file);
    if (!isWhole(file)) throw damaged(original);
  } catch (error) {
    throw damageOf(error, original);
  }
}

/**
 * An open read transaction pins what is copied: without it the copy would begin anew each time that
 * another process writes.
 */
async function copyPages(
  source: DatabaseSync,
  file: string,
  onProgress: OnProgress,
): Promise<void> {
  source.exec('BEGIN');
  source.prepare('SELECT count(*) FROM sqlite_schema').get();
  const total = await backup(source, file, {
    rate: pagesAtOnce,
    progress: ({ totalPages, remainingPages }) =>
      onProgress(totalPages - remainingPages, totalPages),
  });
  source.exec('ROLLBACK');
  onProgress(total, total);
}

/** Makes the copy one file without a WAL and puts it on disk. */
function makeOneFile(file: string): void {
  const database = new DatabaseSync(file);
  try {
    database.exec('PRAGMA journal_mode = DELETE');
  } finally {
    database.close();
  }
  syncFile(file);
}

function isWhole(file: string): boolean {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return pragma(database, 'integrity_check(1)') === 'ok';
  } finally {
    database.close();
  }
}

/**
 * Swaps the file under a lock that no open connection lets through. Who opens `path` meanwhile waits
 * for the lock, and then finds that the file is another (database.ts).
 */
function replace(partial: string, path: string): string {
  const kept = `${path}.before-restore-${new Date().toISOString().replaceAll(/[-:.]/g, '')}`;
  rewriteWal(path);
  const database = new DatabaseSync(path);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec('PRAGMA journal_mode = DELETE'); // needs to be alone, and takes the WAL in
    database.exec('BEGIN EXCLUSIVE');
    const { uid, gid, mode } = statSync(path);
    chownSync(partial, uid, gid);
    chmodSync(partial, mode);
    publish(path, kept);
    renameSync(partial, path);
    syncFile(dirname(path));
  } finally {
    database.close();
  }
  return kept;
}

function refusalFor(error: unknown, file: string): unknown {
  const ofSystem = error instanceof Error && 'code' in error ? String(error.code) : '';
  const [reason, kind] = reasons[isSqliteError(error) ? primaryCode(error) : ofSystem] ?? [];
  return reason === undefined ? error : new Refusal(`${file} ${reason}`, { kind, cause: error });
}

const reasons: Record<number | string, readonly [reason: string, kind?: RefusalKind]> = {
  [resultCode.busy]: ['is in use. Stop every process that has it open, and try again.'],
  [resultCode.corrupt]: [
    'is damaged. Move it away, with the files -wal and -shm beside it, and try again.',
  ],
  [resultCode.full]: ['does not fit: the disk is full.'],
  [resultCode.notADatabase]: ['is not an SQLite database. Move it away, and try again.'],
  EEXIST: ['exists by now, and is never overwritten.', 'name-taken'],
  ENOENT: ['cannot be made: there is no such folder.'],
  EACCES: ['cannot be made: permission is denied.'],
  EROFS: ['cannot be made: the file system is read-only.'],
  ENOSPC: ['does not fit: the disk is full.'],
};
