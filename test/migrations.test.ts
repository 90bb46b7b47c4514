/**
 * The files of migrations, and the number that a database keeps of its schema.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { it, type TestContext } from 'node:test';
import {
  readMigrations,
  encodeSchema,
  refuseNewer,
  refuseUnusable,
  schemaAfter,
  decodeSchema,
} from '../src/shared/migrations.ts';
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
  assert.deepEqual(readMigrations(folder), [
    { sql: '-- Why.\nSELECT 1;\n', refusesOlder: true },
    { sql: 'SELECT 2;\n', refusesOlder: false },
  ]);
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
    assert.throws(() => readMigrations(folderOf(t, files)), { name: 'Error', message });
  }
});

it('the schema number encodes its version and the oldest version that can use it', () => {
  const continuing = { sql: '', refusesOlder: false };
  const refusing = { sql: '', refusesOlder: true };
  const none = decodeSchema(0);
  const one = schemaAfter(none, refusing);
  const two = schemaAfter(one, continuing);
  const three = schemaAfter(two, refusing);
  assert.deepEqual([none, one, two, three].map(encodeSchema), [0, 1_001, 1_002, 3_003]);
  for (const schema of [none, one, two, three, { version: 5, usableFrom: 6 }]) {
    assert.deepEqual(decodeSchema(encodeSchema(schema)), schema);
  }
});

it('refuses to use a schema that excludes this version, and to copy any newer schema', () => {
  const newest = 4;
  const name = 'plants.db';
  for (const number of [1_001, 4_004, 4_005, 1_999])
    refuseUnusable(decodeSchema(number), newest, name);
  for (const number of [1_001, 4_004, 1_004]) refuseNewer(decodeSchema(number), newest, name);
  const refusal = {
    name: 'Refusal',
    kind: 'newer-schema',
    message:
      /^plants\.db was written by a newer Plant Store \(schema 5, this version supports up to 4\)\.$/,
  };
  // The last one is being brought to a schema that refuses this program.
  for (const number of [5_005, 5_004]) {
    assert.throws(() => refuseUnusable(decodeSchema(number), newest, name), refusal);
    assert.throws(() => refuseNewer(decodeSchema(number), newest, name), refusal);
  }
  assert.throws(() => refuseNewer(decodeSchema(4_005), newest, name), refusal);
});
