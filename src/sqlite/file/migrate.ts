/**
 * Migrates a database to the newest schema: runs the numbered files of migrations/ in one transaction.
 * `PRAGMA user_version` holds the number of the schema (migrations.ts).
 */
import type { DatabaseSync } from 'node:sqlite';
import { decodeSchema, encodeSchema, Migrations, type Schema } from '../../shared/migrations.ts';
import { commitAfter, prepare, readPragma } from '../driver.ts';
import { isLocked } from '../errors.ts';
import { beginImmediate } from './locks.ts';

/** "Plnt", which identifies a file as a Plant Store database (PRAGMA application_id). */
export const applicationId = 0x506c6e74;

export const migrations = new Migrations(new URL('../migrations/', import.meta.url));

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
  const { newest } = migrations;
  if (readSchema(database).version < newest) {
    begin(database, wait);
    commitAfter(database, () => {
      const { version } = readSchema(database);
      if (version >= newest) return;
      database.exec(migrations.sqlBetween(version, newest));
      database.exec(`PRAGMA application_id = ${applicationId}`);
      database.exec(`PRAGMA user_version = ${encodeSchema(migrations.schemaOf(newest))}`);
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

/** Returns a function that throws Refusal if this program must not use the schema. A newer one can migrate an open file. */
export function openSchemaCheck(database: DatabaseSync, path: string): () => void {
  const readVersion = prepare<[version: number]>(database, 'PRAGMA user_version');
  return () => migrations.refuseUnusable(decodeSchema(readVersion.get()?.[0] ?? 0), path);
}

export function readSchema(database: DatabaseSync): Schema {
  return decodeSchema(Number(readPragma(database, 'user_version')));
}
