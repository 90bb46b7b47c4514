/**
 * The files of migrations, and the number that a database keeps of its schema.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { it, type TestContext } from 'node:test';
import { Migrations } from '../src/shared/migrations.ts';
import { tempFolder } from './support/temp.ts';

function folderOf(t: TestContext, files: Record<string, string>): URL {
  const folder = tempFolder(t);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return pathToFileURL(`${folder}/`);
}

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
