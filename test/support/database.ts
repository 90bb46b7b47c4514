/**
 * Database files that tests fill and inspect directly.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { TestContext } from 'node:test';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { addToken } from './app.ts';
import { tempFolder } from './temp.ts';

export interface DatabaseFile {
  /** The folder contains only the database. */
  folder: string;
  path: string;
  /** The value for --database. */
  url: string;
}

export function databaseFile(t: Pick<TestContext, 'after'>): DatabaseFile {
  const folder = tempFolder(t);
  const path = join(folder, 'plants.db');
  return { folder, path, url: `sqlite:${path}` };
}

/** Creates the database with `plants` plants of about 800 bytes each. Returns a token of their owner, alice. */
export async function fill(path: string, plants: number): Promise<string> {
  await using storage = new SqliteStorage(path, { create: true });
  const token = await addToken(storage, 'alice');
  using database = new DatabaseSync(path);
  database.exec(`
    BEGIN;
    WITH RECURSIVE ids (id) AS (SELECT 1 WHERE ${plants} > 0 UNION ALL
                                SELECT id + 1 FROM ids WHERE id < ${plants})
    INSERT INTO plants (store, id, owner, tag, name)
    SELECT 1, id, 1, '', replace(hex(zeroblob(100)), '0', '🌱') FROM ids;
    UPDATE stores SET last_id = ${plants};
    COMMIT;`);
  return token;
}

/** The ids of all plants in a file. Throws if SQLite's integrity check fails. */
export function soundIds(path: string): number[] {
  using database = new DatabaseSync(path);
  const faults = database.prepare('PRAGMA integrity_check').all();
  if (faults[0]?.['integrity_check'] !== 'ok') throw new Error(JSON.stringify(faults));
  return database
    .prepare('SELECT id FROM plants ORDER BY id')
    .all()
    .map(({ id }) => Number(id));
}
