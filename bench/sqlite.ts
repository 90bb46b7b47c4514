/**
 * The SQLite files of the systems.
 */
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { openDatabase } from '../src/sqlite/file/open.ts';
import { schemas } from './schemas.ts';
import type { Database, Stored } from './seed.ts';

/** SQLite's page cache while it fills a file. */
const fillCacheKiB = 1_000_000;

export function openSqlite(path: string, system: Stored): Database {
  const open = { service: () => openDatabase(path, { create: true }), typical: openTypical }[
    system
  ];
  /** Works in one transaction, and empties the WAL. */
  const write = (work: (database: DatabaseSync) => void) => {
    using database = open(path);
    database.exec('BEGIN IMMEDIATE');
    work(database);
    database.exec('COMMIT');
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  };
  return {
    address: system === 'service' ? `sqlite:${path}` : path,
    schema: schemas.sqlite[system],
    fill: (hashes, sql) =>
      write((database) => {
        database.exec(`PRAGMA cache_size = -${fillCacheKiB}`);
        database.exec(`
          CREATE TEMP TABLE hashes AS
          SELECT key + 1 AS number, unhex(value) AS hash FROM json_each('${JSON.stringify(hashes)}')`);
        withIndexesDropped(database, () => database.exec(sql));
      }),
    run: (sql) => write((database) => database.exec(sql)),
  };
}

function openTypical(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 5_000 });
  database.exec('PRAGMA journal_mode = WAL');
  database.exec(readFileSync(new URL('./peers/schema.sql', import.meta.url), 'utf8'));
  return database;
}

/** Building an index once after filling is much faster than updating it for each row. */
function withIndexesDropped(database: DatabaseSync, fill: () => void): void {
  const indexes = database
    .prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'plants'`)
    .all()
    .filter(({ sql }) => sql !== null); // the index of a primary key has none and cannot be dropped
  for (const { name } of indexes) database.exec(`DROP INDEX ${String(name)}`);
  fill();
  for (const { sql } of indexes) database.exec(String(sql));
}
