/**
 * Compares the schema of an untrusted file with the one that the migrations create. A missing table would fail
 * every request, and a foreign trigger would run with every change.
 */
import { DatabaseSync } from 'node:sqlite';
import { migrateNew, versionOf } from './migrate.ts';

/** Marks a database that `copy` has not finished (archive.ts). */
export const unfinishedCopyTable = 'CREATE TABLE unfinished_copy (source TEXT NOT NULL) STRICT';

/**
 * Tables that a valid file can have in addition, such as the statistics of ANALYZE
 * (sqlite.org/fileformat.html).
 */
const optionalTables = [
  'CREATE TABLE sqlite_stat1(tbl,idx,stat)',
  'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)',
  unfinishedCopyTable,
];

interface SchemaObject {
  /** Type and name, for messages. */
  title: string;
  /** Its row of sqlite_schema, without the page number. */
  definition: string;
  sql: string | null;
}

/** Describes the first difference, as a predicate of "the database". Undefined if there is none. */
export function schemaDifference(database: DatabaseSync): string | undefined {
  const expected = expectedObjects(versionOf(database));
  const found = objectsOf(database);
  for (const { title, definition } of expected) {
    const object = found.find((each) => each.title === title);
    if (object === undefined) return `has no ${title}`;
    if (object.definition !== definition) return `has a different ${title}`;
  }
  const known = new Set(expected.map(({ definition }) => definition));
  const extra = found.find(
    ({ definition, sql }) => !known.has(definition) && !optionalTables.includes(sql ?? ''),
  );
  return extra && `has the unexpected ${extra.title}`;
}

function expectedObjects(version: number): SchemaObject[] {
  using database = new DatabaseSync(':memory:');
  migrateNew(database, version);
  return objectsOf(database);
}

function objectsOf(database: DatabaseSync): SchemaObject[] {
  const rows = database.prepare(
    'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid',
  );
  return rows.all().map((row) => ({
    title: `${String(row['type'])} ${quote(String(row['name']))}`,
    definition: JSON.stringify(row),
    sql: row['sql'] === null ? null : String(row['sql']),
  }));
}

/** Names are printed on a terminal, which can interpret other characters as commands. */
function quote(name: string): string {
  return JSON.stringify(name).replaceAll(/[^\x20-\x7e]/g, '?');
}
