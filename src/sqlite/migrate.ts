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
  type Migration,
  type Schema,
} from '../migrations.ts';
import { beginImmediate } from './begin.ts';
import { isLocked } from './errors.ts';
import { readPragma } from './pragma.ts';
import { prepare, type Statement } from './table.ts';
import { nowMs } from './clock.ts';

/** "Plnt", which identifies a file as a Plant Store database (PRAGMA application_id). */
export const applicationId = 0x506c6e74;

const migrations = readMigrations(new URL('./migrations/', import.meta.url));

/** How often to retry during a wait without a deadline. It takes hardly any CPU time. */
const longWaitPollMs = 10;

/** The newest schema version that this program supports. */
export const newestVersion = migrations.length;

export interface LockWait {
  /** How long to wait for locks of other processes. */
  maxLockWaitMs: number;
  /** Called after that. The wait then has no deadline, because another process can be migrating a large table. */
  onLongWait?: (() => void) | undefined;
}

/**
 * Several processes can call it at the same time, because each checks the version again under the write lock.
 * Throws Refusal for a newer schema that this program must not use.
 */
export function migrate(database: DatabaseSync, path: string, wait: LockWait): void {
  for (const [version, migration] of migrations.entries()) {
    if (versionOf(database) <= version) applyMigration(database, version, migration, wait);
  }
  refuseUnusableSchema(database, path);
}

/** Creates the schema of a version in an empty database. Sets neither application_id nor user_version. */
export function createSchema(database: DatabaseSync, version: number): void {
  for (const { sql } of migrations.slice(0, version)) database.exec(sql);
}

function applyMigration(
  database: DatabaseSync,
  version: number,
  migration: Migration,
  wait: LockWait,
): void {
  beginMigration(database, wait);
  try {
    const schema = readSchema(database);
    if (schema.version === version) {
      database.exec(migration.sql);
      database.exec(`PRAGMA application_id = ${applicationId}`);
      database.exec(`PRAGMA user_version = ${encodeSchema(schemaAfter(schema, migration))}`);
    }
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function beginMigration(database: DatabaseSync, { maxLockWaitMs, onLongWait }: LockWait): void {
  try {
    beginImmediate(database, nowMs() + maxLockWaitMs);
  } catch (error) {
    if (!isLocked(error) || onLongWait === undefined) throw error;
    onLongWait();
    beginImmediate(database, Infinity, longWaitPollMs);
  } finally {
    database.exec(`PRAGMA busy_timeout = ${maxLockWaitMs}`);
  }
}

export function versionOf(database: DatabaseSync): number {
  return readSchema(database).version;
}

function readSchema(database: DatabaseSync): Schema {
  return decodeSchema(Number(readPragma(database, 'user_version')));
}

export function refuseUnusableSchema(database: DatabaseSync, path: string): void {
  refuseUnusable(readSchema(database), newestVersion, path);
}

export function refuseNewerSchema(database: DatabaseSync, path: string): void {
  refuseNewer(readSchema(database), newestVersion, path);
}

/** Checks that the schema of an open file is still usable, because a newer program can migrate it. */
export class SchemaCheck {
  readonly #path: string;
  readonly #number: Statement<[number: number]>;

  constructor(database: DatabaseSync, path: string) {
    this.#path = path;
    this.#number = prepare(database, 'PRAGMA user_version');
  }

  /** Throws Refusal if this program must not use the schema. */
  check(): void {
    const [number = 0] = this.#number.get() ?? [];
    refuseUnusable(decodeSchema(number), newestVersion, this.#path);
  }
}
