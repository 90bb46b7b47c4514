/**
 * Backs up a database that is in use, and restores one that is not. Neither overwrites a file, and an
 * interruption leaves no partial file under the requested name.
 */
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  renameSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { digestOf } from '../copy/digest.ts';
import { verifyArchive } from '../copy/verify.ts';
import { logWrites } from '../sql/log.ts';
import { retentionWrites } from '../sql/retention.ts';
import { perform } from './tables/statements.ts';
import { Refusal } from '../refusal.ts';
import { openDatabase, walLimitBytes } from './file/open.ts';
import { SqliteArchive } from './archive.ts';
import { Connection } from './connection.ts';
import { prepare, readPragma } from './driver.ts';
import { primaryCode, refusalFor, resultCode, writingRefusal } from './errors.ts';
import {
  publishFile,
  refuseLeftovers,
  replacedSuffix,
  restoredSuffix,
  syncFile,
  TemporaryFile,
} from './file/files.ts';
import { nowMs } from './file/locks.ts';
import { applicationId, migrations, readSchema } from './file/migrate.ts';
import { realPath, refuseUnusablePath } from './file/path.ts';
import { rewriteWal } from './file/rewrite-wal.ts';

/** Called after each step with the number of pages copied, and the total. */
type OnProgress = (done: number, total: number) => void;

/** Pages that each step copies: 1 MiB at the default page size of 4 KiB. */
const stepPages = 256;

/** Additional tables that a valid file can have: statistics of ANALYZE (sqlite.org/fileformat.html). */
const optionalTables = [
  'CREATE TABLE sqlite_stat1(tbl,idx,stat)',
  'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)',
];

/**
 * Copies a snapshot of the database to `file`, which must not exist and gets its name only after it was restored to
 * another file and verified there (`hasLog` as in verify.ts). The copy is a single file that only its owner can read.
 */
export async function backupDatabase(
  path: string,
  file: string,
  hasLog: boolean,
  onProgress: OnProgress,
): Promise<void> {
  try {
    if (lstatSync(file, { throwIfNoEntry: false }) !== undefined) {
      throw new Refusal(
        `${file} already exists, and a backup never overwrites a file. Choose another name.`,
      );
    }
    refuseLeftovers(file);
    using partial = new TemporaryFile(file);
    using source = openDatabase(path, { create: false, migrates: false });
    const { version } = readSchema(source);
    const pageBytes = Number(readPragma(source, 'page_size'));
    const spareBytes = Math.min(walLimitBytes, freeBytesIn(dirname(path)) / 2);
    await copy(source, path, partial.path, true, (done, total) => {
      refuseFullDisk(dirname(file), (2 * total - done) * pageBytes + spareBytes); // it is also restored
      refuseFullDisk(dirname(path), spareBytes); // while a snapshot is read, the WAL only grows
      onProgress(done, total);
    });
    // After an upgrade, an older version that still serves backs up what only the newer one can restore.
    if (version <= migrations.newest) {
      const restored = partial.path + restoredSuffix;
      await restoreDatabase(partial.path, restored, () => {});
      const digest = await withArchive(restored, (archive) => digestOfSound(archive, hasLog));
      // The restored file has columns that an older schema lacks.
      const isComparable = version === migrations.newest;
      if (isComparable && digest !== (await withArchive(partial.path, digestOf))) {
        throw new Refusal('The copy has changed since it was made. Check the disk, and try again.');
      }
    }
    publishFile(partial.path, file);
  } catch (error) {
    throw writingRefusal(error, file);
  }
}

async function withArchive<T>(
  path: string,
  work: (archive: SqliteArchive) => Promise<T>,
): Promise<T> {
  await using archive = new SqliteArchive(path, { create: false, isUnchanged: true });
  return await work(archive); // before the archive is disposed
}

async function digestOfSound(archive: SqliteArchive, hasLog: boolean): Promise<string> {
  const { digest, faults } = await verifyArchive(archive, hasLog);
  const [fault] = faults;
  if (fault === undefined) return digest;
  throw new Refusal(
    `The copy has a fault: ${fault}. Until it is mended, there are no backups: run "npx plant-store verify" with the same --database, and read docs/how-to/back-up.md.`,
  );
}

function freeBytesIn(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

function refuseFullDisk(folder: string, neededBytes: number): void {
  const freeBytes = freeBytesIn(folder);
  if (freeBytes >= neededBytes) return;
  const [needed, free] = [neededBytes, freeBytes].map(
    (size) => `${Math.round(size / 2 ** 20)} MiB`,
  );
  throw new Refusal(
    `A backup needs ${needed} of free space in ${folder}, which has ${free}. Free some space and try again.`,
  );
}

/**
 * Restores the backup `file` to `target`. Renames an existing database, and returns its new path, or undefined
 * if there was none. Throws Refusal if a process has that database open.
 */
export async function restoreDatabase(
  file: string,
  target: string,
  onProgress: OnProgress,
): Promise<string | undefined> {
  using source = openBackup(file);
  try {
    const path = realPath(target); // a symbolic link to it stays
    if (path === realPath(file)) {
      throw new Refusal(`${file} is the database that it would replace. Choose another file.`);
    }
    const exists = existsSync(path);
    if (!exists) refuseLeftovers(path);
    using current = exists ? lockDatabase(path) : undefined;
    using partial = new TemporaryFile(path);
    await copy(source, file, partial.path, false, onProgress);
    refuseForeignContent(partial.path, file); // checks the copy, because the original can change meanwhile
    migrateAndLog(partial.path, basename(file));
    convertToSingleFile(partial.path);
    if (current !== undefined) return swapFiles(current, partial.path, path);
    publishFile(partial.path, path);
    return undefined;
  } catch (error) {
    throw writingRefusal(error, target);
  }
}

/**
 * Locks the database until the connection is closed. Fails if any other connection is open. A process that opens `path`
 * meanwhile waits for the lock, and then detects the new file (file/open.ts).
 */
function lockDatabase(path: string): DatabaseSync {
  refuseUnusablePath(path);
  rewriteWal(path);
  using opening = new DisposableStack();
  const database = opening.use(new DatabaseSync(path));
  database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK'); // the lock remains
  opening.move();
  return database;
}

function openBackup(file: string): DatabaseSync {
  try {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) {
      throw new Refusal(`There is no backup at ${file}. Choose another file.`);
    }
    using opening = new DisposableStack();
    const source = opening.use(new DatabaseSync(file, { readOnly: true }));
    const schema = readSchema(source);
    const isOurs = readPragma(source, 'application_id') === applicationId && schema.version > 0;
    if (!isOurs) throw notABackup(file);
    migrations.refuseNewer(schema, file);
    opening.move();
    return source;
  } catch (error) {
    throw refusalFor(sourceRefusal(error, file), file);
  }
}

function notABackup(file: string, reason = ''): Refusal {
  return new Refusal(`${file} is not a Plant Store backup${reason}. Choose another file.`);
}

/** A file that passes SQLite's integrity check can still have another schema, or violate foreign keys. */
function refuseForeignContent(copiedFile: string, original: string): void {
  using database = new DatabaseSync(copiedFile, { readOnly: true });
  const difference = schemaDifference(database);
  if (difference !== undefined) throw notABackup(original, `: the database ${difference}`);
  const orphan = database.prepare('PRAGMA foreign_key_check').get();
  if (orphan !== undefined) {
    throw new Refusal(
      `${original} is not a complete backup: a row of ${String(orphan['table'])} refers to a missing row ` +
        `of ${String(orphan['parent'])}. Choose another file.`,
    );
  }
}

/**
 * The first difference from the schema that the migrations create, to follow the words "the database". A missing table
 * would fail every request, and a foreign trigger would run with every change.
 */
function schemaDifference(database: DatabaseSync): string | undefined {
  using empty = new DatabaseSync(':memory:');
  empty.exec(migrations.sqlBetween(0, readSchema(database).version));
  const [expected, found] = [readObjects(empty), readObjects(database)];
  for (const [title, definition] of expected) {
    if (!found.has(title)) return `has no ${title}`;
    if (found.get(title) !== definition) return `has a different ${title}`;
  }
  const [unexpected] = new Set(found.keys()).difference(expected);
  return unexpected && `has the unexpected ${unexpected}`;
}

/** By type and name, for messages. The definition is the row in sqlite_schema, without the page number. */
function readObjects(database: DatabaseSync): Map<string, string> {
  const rows = prepare<[type: string, name: string, table: string, sql: string | null]>(
    database,
    'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid',
  );
  const others = rows.all().filter(([, , , sql]) => !optionalTables.includes(sql ?? ''));
  return new Map(
    others.map((row) => {
      // Escapes characters that a terminal can interpret as commands.
      const name = JSON.stringify(row[1]).replaceAll(/[^\x20-\x7e]/g, '?');
      return [`${row[0]} ${name}`, JSON.stringify(row)];
    }),
  );
}

/** The Refusal for an error that shows damage of the source. Any other error is returned unchanged. */
function sourceRefusal(error: unknown, original: string): unknown {
  const code = primaryCode(error);
  if (code === resultCode.notADatabase) return notABackup(original);
  return code === resultCode.corrupt ? damaged(original) : error;
}

function damaged(original: string): Refusal {
  return new Refusal(
    `${original} is damaged: SQLite finds errors in it. Keep it, and restore an intact backup.`,
  );
}

/** Copies the database that was opened from `original`, and checks the integrity of the copy. */
async function copy(
  source: DatabaseSync,
  original: string,
  file: string,
  isInUse: boolean,
  onProgress: OnProgress,
): Promise<void> {
  try {
    source.exec('BEGIN'); // otherwise, SQLite restarts the copy when another process writes
    source.prepare('SELECT count(*) FROM sqlite_schema').get();
    const total = await backup(source, file, {
      rate: stepPages,
      progress: ({ totalPages, remainingPages }) => {
        syncFile(file); // a sync of the service would wait for one of the whole file
        onProgress(totalPages - remainingPages, totalPages);
      },
    });
    source.exec('ROLLBACK');
    // All that was written since: a checkpoint of the service would hold up its writes while it copies that.
    if (isInUse) source.exec('PRAGMA wal_checkpoint(PASSIVE)');
    onProgress(total, total);
    convertToSingleFile(file);
    using copied = new DatabaseSync(file, { readOnly: true });
    if (readPragma(copied, 'integrity_check(1)') !== 'ok') throw damaged(original);
  } catch (error) {
    throw sourceRefusal(error, original);
  }
}

/** Afterwards, the log of each store shows when this backup was restored. */
function migrateAndLog(copiedFile: string, backupName: string): void {
  const connection = new Connection({ path: copiedFile, cacheKiB: 1_024 });
  try {
    const { database } = connection.open({ create: false });
    const stores = prepare<[store: number]>(database, 'SELECT store FROM stores').all();
    connection.write((tables) => {
      for (const [store] of stores) perform(tables, logWrites.logRestore(store, backupName));
      perform(tables, retentionWrites.beginEpoch());
    }, nowMs());
  } finally {
    connection.close();
  }
}

/** Switches the copy from WAL mode, so that it needs no other file, and syncs it. */
function convertToSingleFile(file: string): void {
  {
    using database = new DatabaseSync(file);
    database.exec('PRAGMA journal_mode = DELETE');
  }
  syncFile(file);
}

/** Swaps the files under the lock of `current`, the database at `path`. Returns the new path of the old file. */
function swapFiles(current: DatabaseSync, partial: string, path: string): string {
  const oldPath = `${path}${replacedSuffix}${new Date().toISOString().replaceAll(/[-:.]/g, '')}`;
  current.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE'); // checkpoints the WAL
  const { uid, gid, mode } = statSync(path);
  chownSync(partial, uid, gid);
  chmodSync(partial, mode);
  publishFile(path, oldPath);
  renameSync(partial, path);
  syncFile(dirname(path));
  return oldPath;
}
