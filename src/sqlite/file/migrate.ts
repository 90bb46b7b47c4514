/**
 * Migrates a database to the newest schema: runs the numbered files of migrations/, each in its own
 * transaction. `PRAGMA user_version` holds the number of the schema (migrations.ts).
 */
import type { DatabaseSync } from 'node:sqlite';
import {
  readMigrations,
  encodeSchema,
  refuseNewer,
  refuseUnusable,
  schemaAfter,
  decodeSchema,
  type Schema,
} from '../../shared/migrations.ts';
import { commitAfter, prepare, readPragma } from '../driver.ts';
import { isLocked } from '../errors.ts';
import { beginImmediate } from './locks.ts';

/** "Plnt", which identifies a file as a Plant Store database (PRAGMA application_id). */
export const applicationId = 0x506c6e74;

const migrations = readMigrations(new URL('../migrations/', import.meta.url));

/** The newest schema version that this program supports. */
export const newestVersion = migrations.length;

export interface LockWait {
  /** Until when to wait for locks of other processes, by nowMs(). */
  deadlineMs: number;
  /**
   * Called if a migration has to wait longer. The wait then has no deadline, because another process can be migrating a
   * large table. Without this function, opening fails.
   */
  onLongWait?: (() => void) | undefined;
}

/**
 * Several processes can call this at the same time, because each checks the version again under the write lock.
 * Throws Refusal for a newer schema that this program must not use.
 */
export function migrate(database: DatabaseSync, path: string, wait: LockWait): void {
  for (const [version, migration] of migrations.entries()) {
    if (versionOf(database) > version) continue;
    begin(database, wait);
    commitAfter(database, () => {
      const schema = readSchema(database);
      if (schema.version !== version) return;
      database.exec(migration.sql);
      database.exec(`PRAGMA application_id = ${applicationId}`);
      database.exec(`PRAGMA user_version = ${encodeSchema(schemaAfter(schema, migration))}`);
    });
  }
  openSchemaCheck(database, path)();
}

function begin(database: DatabaseSync, { deadlineMs, onLongWait }: LockWait): void {
  try {
    beginImmediate(database, deadlineMs);
  } catch (error) {
    if (!isLocked(error) || onLongWait === undefined) throw error;
    onLongWait();
    beginImmediate(database, Infinity);
  }
}

/** Creates the schema of a version in an empty database. Sets neither application_id nor user_version. */
export function createSchema(database: DatabaseSync, version: number): void {
  for (const { sql } of migrations.slice(0, version)) database.exec(sql);
}

export function versionOf(database: DatabaseSync): number {
  return readSchema(database).version;
}

/** Returns a function that throws Refusal if this program must not use the schema. A newer one can migrate an open file. */
export function openSchemaCheck(database: DatabaseSync, path: string): () => void {
  const readVersion = prepare<[version: number]>(database, 'PRAGMA user_version');
  return () => refuseUnusable(decodeSchema(readVersion.get()?.[0] ?? 0), newestVersion, path);
}

/** Throws Refusal if the schema is newer, even if this program can use it. */
export function refuseNewerSchema(database: DatabaseSync, path: string): void {
  refuseNewer(readSchema(database), newestVersion, path);
}

function readSchema(database: DatabaseSync): Schema {
  return decodeSchema(Number(readPragma(database, 'user_version')));
}
