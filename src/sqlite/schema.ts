/**
 * Compares the schema of a file that somebody else may have prepared with the one that the migrations
 * create: a missing table would fail every request, and a foreign trigger would act with every change.
 */
import { DatabaseSync } from 'node:sqlite';
import { migrateNew, versionOf } from './migrate.ts';

/** Versions a database that `copy` has not finished (archive.ts). */
export const unfinishedCopyTable = 'CREATE TABLE unfinished_copy (source TEXT NOT NULL) STRICT';

/** What a database may contain besides: statistics of ANALYZE (sqlite.org/fileformat.html) and the mark. */
const optional = [
  'CREATE TABLE sqlite_stat1(tbl,idx,stat)',
  'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)',
  unfinishedCopyTable,
];

interface SchemaObject {
  /** Type and name, as a person reads them. */
  title: string;
  /** All that sqlite_schema says of it but where it is in the file. */
  definition: string;
  sql: string | null;
}

/** The first difference, to follow "the database"; undefined if there is none. */
export function schemaDifference(database: DatabaseSync): string | undefined {
  const expected = expectedObjects(versionOf(database));
  const found = objectsOf(database);
  for (const { title, definition } of expected) {
    const object = found.find((one) => one.title === title);
    if (object === undefined) return `has no ${title}`;
    if (object.definition !== definition) return `has another ${title}`;
  }
  const known = new Set(expected.map(({ definition }) => definition));
  const extra = found.find(
    ({ definition, sql }) => !known.has(definition) && !optional.includes(sql ?? ''),
  );
  return extra && `has the ${extra.title}, which is not part of it`;
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
    title: `${String(row['type'])} ${shown(String(row['name']))}`,
    definition: JSON.stringify(row),
    sql: row['sql'] === null ? null : String(row['sql']),
  }));
}

/** A name goes to a terminal, which may take more than letters for commands. */
function shown(name: string): string {
  return JSON.stringify(name).replaceAll(/[^\x20-\x7e]/g, '?');
}
