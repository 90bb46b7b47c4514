/**
 * `copy` carries the columns that src/copy/archive.ts names. One that a migration adds has to be
 * added there, or here with the reason why a copy does without it.
 */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { copiedColumns, tables } from '../src/copy/archive.ts';
import { openPostgresArchive } from '../src/postgres/archive.ts';
import { openDatabase } from '../src/sqlite/file/open.ts';
import { databaseFile } from './support/database.ts';
import { query } from './support/postgres.ts';
import { testDatabase } from './support/storages.ts';

const ofSqlite = {
  'changes.key': 'follows from the store and the position',
  'stores.number': 'counts the stores of the file',
  'grant_changes.count': 'shows them whether their grants are old',
  'retention.id': 'is set by the migration',
  'retention.confirmed_at': 'is set by the migration',
  'retention.ahead_since': 'is about the clock of the copy',
  'retention.epoch': 'differs in each database',
};

const ofPostgres = {
  'stores.writer': 'shows a replica whether its last changes were committed',
  'stores.plants': 'is counted when it is missing',
  'retention.id': 'is set by the migration',
  'retention.confirmed_at': 'is set by the migration',
  'retention.ahead_since': 'is about the clock of the copy',
  'retention.epoch': 'differs in each database',
  'stores.grants': 'shows the replicas which of their grants are old',
  'named_stores.name': 'follows from the stores, and is added with them',
  'named_stores.store': 'follows from the stores, and is added with them',
  'named_stores.key': 'follows from the stores, and is added with them',
};

for (const [engine, notCopied, catalogue] of [
  ['SQLite', ofSqlite, columnsOfSqlite],
  ['PostgreSQL', ofPostgres, columnsOfPostgres],
] as const)
  it(`${engine}: copies every column except those that a copy does not need`, async (t) => {
    const names = tables.flatMap((table) => copiedColumns[table].map((name) => `${table}.${name}`));
    const expected = [...names, ...Object.keys(notCopied)];
    assert.deepEqual((await catalogue(t)).toSorted(), expected.toSorted());
  });

async function columnsOfSqlite(t: TestContext): Promise<string[]> {
  using database = openDatabase(databaseFile(t).path, { create: true });
  const rows = database.prepare(`
    SELECT tables.name || '.' || columns.name AS name
    FROM sqlite_schema AS tables, pragma_table_xinfo(tables.name) AS columns
    WHERE tables.type = 'table'`);
  return rows.all().map(({ name }) => String(name));
}

async function columnsOfPostgres(t: TestContext): Promise<string[]> {
  const database = await testDatabase(t, 'PostgreSQL');
  await (await database.open())[Symbol.asyncDispose](); // to create the schema
  const rows = await query(
    database.url,
    `SELECT table_name || '.' || column_name AS name
     FROM information_schema.columns
     WHERE table_schema = 'plant_store' AND table_name <> 'migrations' -- describes the schema itself`,
  );
  return (rows as { name: string }[]).map(({ name }) => name); // as the statement names it
}

it('PostgreSQL: the grants of a copied store have a version that no other database has', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  await using archive = await openPostgresArchive(url, { create: true });
  const versions = new Set<unknown>(['0']); // of a store without tokens
  for (const store of [1, 2]) {
    await archive.fill((target) => target.add('stores', [[store, `store ${store}`, 0, 0, 0]]));
    const [row] = await query(url, `SELECT grants FROM plant_store.stores WHERE store = ${store}`);
    versions.add((row as { grants: string }).grants); // the only column
  }
  assert.equal(versions.size, 3);
});
