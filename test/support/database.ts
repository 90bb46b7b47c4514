/**
 * Database files as a person with a tool sees them, and ones that are large at once.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { TestContext } from 'node:test';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { addToken } from './app.ts';
import { tempFolder } from './temp.ts';

export interface DatabaseFile {
  /** The folder that holds it and nothing else. */
  folder: string;
  path: string;
  /** What --database takes. */
  url: string;
}

export function databaseFile(t: Pick<TestContext, 'after'>): DatabaseFile {
  const folder = tempFolder(t);
  const path = join(folder, 'plants.db');
  return { folder, path, url: `sqlite:${path}` };
}

/** Makes the database with a token for alice, who owns `plants` plants of some 800 bytes each. */
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

/** The ids of all plants in a file, once SQLite finds nothing wrong with it. */
export function soundIds(path: string): number[] {
  using database = new DatabaseSync(path);
  const faults = database.prepare('PRAGMA integrity_check').all();
  if (faults[0]?.['integrity_check'] !== 'ok') throw new Error(JSON.stringify(faults));
  return database
    .prepare('SELECT id FROM plants ORDER BY id')
    .all()
    .map(({ id }) => Number(id));
}
