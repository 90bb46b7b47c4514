/**
 * The files of migrations, and the number that a database keeps of its schema.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { it, type TestContext } from 'node:test';
import { decodeSchema, encodeSchema, Migrations } from '../src/shared/migrations.ts';
import { tempFolder } from './support/temp.ts';

function folderOf(t: TestContext, files: Record<string, string>): URL {
  const folder = tempFolder(t);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return pathToFileURL(`${folder}/`);
}

it('reads migrations in order, and whether older versions continue', (t) => {
  const folder = folderOf(t, {
    '002-more.sql': '-- Older versions: continue\nSELECT 2;\n',
    '001-first.sql': '-- Older versions: refused\n-- Why.\nSELECT 1;\n',
    'README.md': 'no migration',
  });
  const migrations = new Migrations(folder);
  assert.match(migrations.sqlBetween(0, 2), /SELECT 1;[^]*SELECT 2;/);
  assert.doesNotMatch(migrations.sqlBetween(0, 1), /SELECT 2;/);
  assert.doesNotMatch(migrations.sqlBetween(1, 2), /SELECT 1;/);
  assert.deepEqual(
    [0, 1, 2].map((version) => migrations.schemaOf(version)),
    [
      { version: 0, usableFrom: 0 },
      { version: 1, usableFrom: 1 },
      { version: 2, usableFrom: 1 },
    ],
  );
});

it('rejects a migration without a mark for older versions or out of order', (t) => {
  const marked = '-- Older versions: continue\nSELECT 1;\n';
  for (const [files, message] of [
    [{ '001-first.sql': 'SELECT 1;\n' }, /001-first\.sql: the first line must be "-- Older/],
    [{ '001-first.sql': `\n${marked}` }, /the first line must be/],
    [{ '001-first.sql': '-- Older versions: perhaps\n' }, /the first line must be/],
    [{ '001-first.sql': marked, '003-third.sql': marked }, /003-third\.sql: .* must be 002/],
    [{ '001-one.sql': marked, '001-two.sql': marked }, /001-two\.sql: .* must be 002/],
  ] as const) {
    assert.throws(() => new Migrations(folderOf(t, files)), { name: 'Error', message });
  }
});

it('the schema number encodes its version and the oldest version that can use it', (t) => {
  const migrations = migrationsOf(t, ['refused', 'continue', 'refused']);
  const schemas = [0, 1, 2, 3].map((version) => migrations.schemaOf(version));
  assert.deepEqual(schemas.map(encodeSchema), [0, 1_001, 1_002, 3_003]);
  for (const schema of [...schemas, { version: 5, usableFrom: 6 }]) {
    assert.deepEqual(decodeSchema(encodeSchema(schema)), schema);
  }
});

it('refuses to use a schema that excludes this version, and to copy any newer schema', (t) => {
  const migrations = migrationsOf(t, ['refused', 'refused', 'refused', 'refused']);
  const use = (number: number) => migrations.refuseUnusable(decodeSchema(number), 'plants.db');
  const copy = (number: number) => migrations.refuseNewer(decodeSchema(number), 'plants.db');
  for (const number of [1_001, 4_004, 4_005, 1_999]) use(number);
  for (const number of [1_001, 4_004, 1_004]) copy(number);
  const refusal = {
    name: 'Refusal',
    message:
      /^plants\.db was written by a newer Plant Store \(schema 5, this version supports up to 4\)\. Update Plant Store/,
  };
  // The last one is being brought to a schema that refuses this program.
  for (const number of [5_005, 5_004]) {
    assert.throws(() => use(number), refusal);
    assert.throws(() => copy(number), refusal);
  }
  assert.throws(() => copy(4_005), refusal);
});

function migrationsOf(t: TestContext, older: readonly ('continue' | 'refused')[]): Migrations {
  const files = older.map((what, at) => [`00${at + 1}-one.sql`, `-- Older versions: ${what}\n`]);
  return new Migrations(folderOf(t, Object.fromEntries(files)));
}
