/**
 * Many clients at once.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { it } from 'node:test';
import { openDatabase } from '../../src/sqlite/file/open.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { addToken } from '../support/app.ts';
import { runOk } from '../support/command.ts';
import { soundIds } from '../support/database.ts';
import { startService, statusOf } from '../support/service.ts';
import { tempFolder } from '../support/temp.ts';

it('64 clients write for long during many commands without lock errors', async (t) => {
  const [clients, plantsEach, tokensMade, backupsTaken] = [64, 90, 20, 10];
  const { url, path, open, request, tokenOf } = await startService(t);
  const folder = tempFolder(t);
  const writing = Array.from({ length: clients }, async () => {
    const connection = open();
    const create = request('POST /plants?fields=id', { body: '{"name":"Monstera"}' });
    for (let at = 0; at < plantsEach; at++) {
      connection.write(create);
      const created = await connection.answer();
      assert.ok(created);
      assert.equal(created.status, 201, created.body);
      if (at % 3 !== 0) continue;
      const { id } = JSON.parse(created.body) as { id: number };
      assert.equal(await statusOf(connection, request(`DELETE /plants/${id}`)), 204);
    }
  });
  const makingTokens = (async () => {
    for (let at = 0; at < tokensMade; at++) {
      const list = request('GET /plants', { token: await tokenOf(`user ${at}`) });
      assert.equal(await statusOf(open(), list), 200);
    }
  })();
  const backups = Array.from({ length: backupsTaken }, (_, at) => join(folder, `${at}.db`));
  const takingBackups = (async () => {
    for (const backup of backups) await runOk(['backup', backup, '--database', url]);
  })();
  await Promise.all([...writing, makingTokens, takingBackups]);

  assert.equal(soundIds(path).length, clients * plantsEach * (2 / 3));
  for (const backup of backups) {
    soundIds(backup);
    using database = openDatabase(backup, { create: false });
    const count = (sql: string) => database.prepare(sql).all().length;
    assert.equal(count('PRAGMA foreign_key_check'), 0);
    // A moment and not a mixture: no plant has an id above the largest that its store had held.
    assert.equal(count('SELECT id FROM plants JOIN stores USING (store) WHERE id > last_id'), 0);
  }
});

it('2,500 clients with uncached tokens send requests at once, and all get responses', async (t) => {
  const { path, open, request } = await startService(t);
  const storage = new SqliteStorage(path, { create: false });
  const users = Array.from({ length: 2_500 }, (_, at) => `user ${at}`);
  const tokens = await Promise.all(users.map((user) => addToken(storage, user)));
  await storage[Symbol.asyncDispose]();
  // One at a time: those beyond the backlog of the socket would be late, and the first ones idle for too long.
  const connections = await Array.fromAsync(tokens, async (token) => {
    const connection = open();
    await once(connection.socket, 'connect');
    return { token, connection };
  });
  const statuses = connections.map(({ token, connection }) =>
    statusOf(connection, request('GET /plants', { token })),
  );
  assert.deepEqual(new Set(await Promise.all(statuses)), new Set([200]));
});
