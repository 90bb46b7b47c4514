/**
 * Compares the schema of an untrusted file with the one that the migrations create. A missing table would fail
 * every request, and a foreign trigger would run with every change.
 */
import { DatabaseSync } from 'node:sqlite';
import { migrations, readSchema } from './migrate.ts';

/** Additional tables that a valid file can have: statistics of ANALYZE (sqlite.org/fileformat.html). */
const optionalTables = [
  'CREATE TABLE sqlite_stat1(tbl,idx,stat)',
  'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)',
];

/** Describes the first difference, to follow the words "the database". Undefined if there is none. */
export function schemaDifference(database: DatabaseSync): string | undefined {
  using empty = new DatabaseSync(':memory:');
  empty.exec(migrations.sqlBetween(0, readSchema(database).version));
  const [expected, found] = [readObjects(empty), readObjects(database)];
  for (const [title, { definition }] of expected) {
    if (!found.has(title)) return `has no ${title}`;
    if (found.get(title)?.definition !== definition) return `has a different ${title}`;
  }
  for (const [title, { sql }] of found) {
    if (!expected.has(title) && !optionalTables.includes(sql)) return `has the unexpected ${title}`;
  }
  return undefined;
}

/** By type and name, for messages. The definition is the row in sqlite_schema, without the page number. */
function readObjects(database: DatabaseSync): Map<string, { definition: string; sql: string }> {
  const rows = database.prepare(
    'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid',
  );
  return new Map(
    rows.all().map((row) => {
      // Escapes characters that a terminal can interpret as commands.
      const name = JSON.stringify(row['name']).replaceAll(/[^\x20-\x7e]/g, '?');
      const [title, sql] = [`${String(row['type'])} ${name}`, String(row['sql'])];
      return [title, { definition: JSON.stringify(row), sql }];
    }),
  );
}
