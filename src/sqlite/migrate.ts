/**
 * Brings a database to the newest schema: the numbered files of migrations/, each in a transaction
 * of its own. `PRAGMA user_version` holds the number of the schema (migrations.ts).
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
import { begin } from './begin.ts';
import { isLocked } from './errors.ts';
import { pragma } from './pragma.ts';
import { prepare, type Statement } from './statement.ts';
import { nowMs } from './writes.ts';

/** "Plnt": how SQLite files of ours are told from others (PRAGMA application_id). */
export const applicationId = 0x506c6e74;

const migrations = readMigrations(new URL('./migrations/', import.meta.url));

/** How often a process asks for a lock that it waits for without a bound: rarely enough to cost nothing. */
const longPollMs = 10;

/** The schema that this program knows. */
export const newestVersion = migrations.length;

export interface Wait {
  /** How long to wait for a lock of another process. */
  lockMs: number;
  /** Called if that is over. Then waits for as long as it takes: the other may migrate a large table. */
  onLongWait?: (() => void) | undefined;
}

/**
 * Safe when several processes do it at once: each looks again once it holds the write lock. Throws Refusal
 * for a newer schema that this program must not use.
 */
export function migrate(database: DatabaseSync, path: string, wait: Wait): void {
  for (const [version, migration] of migrations.entries()) {
    if (versionOf(database) <= version) apply(database, version, migration, wait);
  }
  refuseUnusableSchema(database, path);
}

/** Brings an empty database of this process to the schema of a version, without marking it as ours. */
export function migrateNew(database: DatabaseSync, version: number): void {
  for (const { sql } of migrations.slice(0, version)) database.exec(sql);
}

function apply(database: DatabaseSync, version: number, migration: Migration, wait: Wait): void {
  beginInTurn(database, wait);
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

function beginInTurn(database: DatabaseSync, { lockMs, onLongWait }: Wait): void {
  try {
    begin(database, nowMs() + lockMs);
  } catch (error) {
    if (!isLocked(error) || onLongWait === undefined) throw error;
    onLongWait();
    begin(database, Infinity, longPollMs);
  } finally {
    database.exec(`PRAGMA busy_timeout = ${lockMs}`);
  }
}

export function versionOf(database: DatabaseSync): number {
  return readSchema(database).version;
}

function readSchema(database: DatabaseSync): Schema {
  return decodeSchema(Number(pragma(database, 'user_version')));
}

export function refuseUnusableSchema(database: DatabaseSync, path: string): void {
  refuseUnusable(readSchema(database), newestVersion, path);
}

export function refuseNewerSchema(database: DatabaseSync, path: string): void {
  refuseNewer(readSchema(database), newestVersion, path);
}

/** Whether the schema of a file that stays open can still be used: a newer program may change it. */
export class SchemaCheck {
  readonly #path: string;
  readonly #number: Statement<[number: number]>;

  constructor(database: DatabaseSync, path: string) {
    this.#path = path;
    this.#number = prepare(database, 'PRAGMA user_version');
  }

  /** Throws Refusal if it cannot. */
  check(): void {
    const [number = 0] = this.#number.get() ?? [];
    refuseUnusable(decodeSchema(number), newestVersion, this.#path);
  }
}
