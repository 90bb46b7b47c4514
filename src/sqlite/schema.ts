/**
 * Compares the schema of an untrusted file with the one that the migrations create. A missing table would fail
 * every request, and a foreign trigger would run with every change.
 */
import { DatabaseSync } from 'node:sqlite';
import { createSchema, versionOf } from './migrate.ts';

/** Marks an unfinished copy (archive.ts). SQLite stores this text, and files are compared with it. */
export const unfinishedCopyTable = 'CREATE TABLE unfinished_copy (source TEXT NOT NULL) STRICT';

/**
 * Additional tables that a valid file can have: statistics of ANALYZE and the marker of a copy
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
  /** Its row in sqlite_schema, without the page number. */
  definition: string;
  sql: string | null;
}

/** Describes the first difference, to follow the words "the database". Undefined if there is none. */
export function schemaDifference(database: DatabaseSync): string | undefined {
  const expected = createExpectedObjects(versionOf(database));
  const found = readObjects(database);
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

function createExpectedObjects(version: number): SchemaObject[] {
  using database = new DatabaseSync(':memory:');
  createSchema(database, version);
  return readObjects(database);
}

function readObjects(database: DatabaseSync): SchemaObject[] {
  const rows = database.prepare(
    'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid',
  );
  return rows.all().map((row) => ({
    title: `${String(row['type'])} ${quote(String(row['name']))}`,
    definition: JSON.stringify(row),
    sql: row['sql'] === null ? null : String(row['sql']),
  }));
}

/** Escapes characters that a terminal can interpret as commands, because names are printed there. */
function quote(name: string): string {
  return JSON.stringify(name).replaceAll(/[^\x20-\x7e]/g, '?');
}
