import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it } from 'node:test';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { credentialOf } from '../../src/access/token.ts';
import { addToken } from '../support/app.ts';
import { tempFolder } from '../support/temp.ts';

it('SQLite: the WAL stays bounded even if there is always a reader', async (t) => {
  const path = join(tempFolder(t), 'plants.db');
  const storage = new SqliteStorage(path, { create: true });
  t.after(() => storage[Symbol.asyncDispose]());
  const token = credentialOf(await addToken(storage, 'alice'));
  const { caller } = (await storage.identity.identify(token)) ?? assert.fail();
  let [reading, next] = [new DatabaseSync(path), new DatabaseSync(path)];
  const begin = (reader: DatabaseSync) => {
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM users').get();
  };
  begin(reading);
  const interval = setInterval(() => {
    begin(next);
    reading.exec('COMMIT');
    [reading, next] = [next, reading];
  }, 2);
  t.after(() => {
    clearInterval(interval);
    for (const reader of [reading, next]) reader.close();
  });

  const name = '🌵'.repeat(200);
  for (let turn = 0; turn < 160; turn++) {
    await Promise.all(Array.from({ length: 512 }, () => storage.plants.create(caller, { name })));
  }
  const mib = statSync(`${path}-wal`).size / 1024 / 1024;
  assert.ok(mib < 120, `${mib} MiB`);
});
