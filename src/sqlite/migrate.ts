/**
 * Brings a database to the newest schema: the numbered files of migrations/, each in a transaction
 * of its own. `PRAGMA user_version` holds the number of the last one that was applied.
 */
import { readdirSync, readFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { Refusal } from '../refusal.ts';
import { pragma } from './pragma.ts';

/** "Plnt": how SQLite files of ours are told from others (PRAGMA application_id). */
export const applicationId = 0x506c6e74;

const folder = new URL('./migrations/', import.meta.url);
const files = readdirSync(folder)
  .filter((file) => file.endsWith('.sql'))
  .toSorted();

/** The schema that this program knows. */
export const newestVersion = files.length;

/** Safe when several processes do it at once: each looks again once it holds the write lock. */
export function migrate(database: DatabaseSync, path: string): void {
  refuseNewerSchema(database, path);
  for (const [version, file] of files.entries()) {
    if (versionOf(database) <= version) apply(database, version, file);
  }
}

/** Brings an empty database of this process to the schema of a version, without marking it as ours. */
export function migrateNew(database: DatabaseSync, version: number): void {
  for (const file of files.slice(0, version)) database.exec(sqlOf(file));
}

function apply(database: DatabaseSync, version: number, file: string): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    if (versionOf(database) === version) {
      database.exec(sqlOf(file));
      database.exec(`PRAGMA application_id = ${applicationId}`);
      database.exec(`PRAGMA user_version = ${version + 1}`);
    }
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function sqlOf(file: string): string {
  return readFileSync(new URL(file, folder), 'utf8');
}

export function refuseNewerSchema(database: DatabaseSync, path: string): void {
  const version = versionOf(database);
  if (version > newestVersion) {
    throw new Refusal(
      `${path} was written by a newer Plant Store (schema ${version}, this one knows ${newestVersion}).`,
      { kind: 'newer-schema' },
    );
  }
}

export function versionOf(database: DatabaseSync): number {
  return Number(pragma(database, 'user_version'));
}
