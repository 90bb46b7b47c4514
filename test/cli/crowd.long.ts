/**
 * Many clients at once.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it, type TestContext } from 'node:test';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { addToken, call } from '../support/app.ts';
import { run, runOk, serve } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';

it('64 clients write for long during many commands without lock errors', (t) =>
  writeDuringCommands(t, { clients: 64, plantsEach: 90, tokensMade: 20, backupsTaken: 10 }));

it('2,500 clients with uncached tokens send requests at once, and all get responses', (t) =>
  sendAtOnce(t, 2_500));

interface Crowd {
  clients: number;
  plantsEach: number;
  tokensMade: number;
  backupsTaken: number;
}

/** Clients write while commands create tokens and back the database up. */
async function writeDuringCommands(
  t: TestContext,
  { clients, plantsEach, tokensMade, backupsTaken }: Crowd,
): Promise<void> {
  const folder = tempFolder(t);
  const database = ['--database', `sqlite:${join(folder, 'plants.db')}`];
  const token = await runOk(['token', 'create', 'alice', ...database]);
  const { address } = await serve(t, database);

  const writing = Array.from({ length: clients }, async () => {
    for (let at = 0; at < plantsEach; at++) {
      const path = `${address}/plants?fields=id`;
      const created = await call(path, 'POST', { token, json: { name: 'Monstera' } });
      assert.equal(created.status, 201, created.text);
      if (at % 3 !== 0) continue;
      const { id } = created.json as { id: number };
      const deleted = await call(`${address}/plants/${id}`, 'DELETE', { token });
      assert.equal(deleted.status, 204, deleted.text);
    }
  });
  const makingTokens = (async () => {
    for (let at = 0; at < tokensMade; at++) {
      const made = await run(['token', 'create', `user ${at}`, ...database]);
      assert.equal(made.status, 0, made.stderr);
      const bearer = { token: made.stdout.trim() };
      assert.equal((await call(`${address}/plants`, 'GET', bearer)).text, '[]');
    }
  })();
  const takingBackups = (async () => {
    for (let at = 0; at < backupsTaken; at++) {
      const taken = await run(['backup', join(folder, `backup-${at}.db`), ...database]);
      assert.equal(taken.status, 0, taken.stderr);
    }
  })();
  await Promise.all([...writing, makingTokens, takingBackups]);

  const left = await call(`${address}/plants`, 'GET', { token });
  assert.equal((left.json as unknown[]).length, clients * plantsEach * (2 / 3));
  for (let at = 0; at < backupsTaken; at++) {
    const backup = new DatabaseSync(join(folder, `backup-${at}.db`), { readOnly: true });
    assert.deepEqual(
      { ...backup.prepare('PRAGMA integrity_check').get() },
      { integrity_check: 'ok' },
    );
    assert.deepEqual(backup.prepare('PRAGMA foreign_key_check').all(), []);
    // A moment and not a mixture: no plant has an id above the largest that its store had held.
    const beyond = backup.prepare(
      'SELECT count(*) AS count FROM plants JOIN stores USING (store) WHERE id > last_id',
    );
    assert.deepEqual({ ...beyond.get() }, { count: 0 });
    backup.close();
  }
}

/** Every client has a token of its own that the service has not seen, and gets its response. */
async function sendAtOnce(t: TestContext, clients: number): Promise<void> {
  const { path, url } = databaseFile(t);
  const storage = new SqliteStorage(path, { create: true });
  const tokens = await Promise.all(
    Array.from({ length: clients }, (_, at) => addToken(storage, `user ${at}`)),
  );
  await storage[Symbol.asyncDispose]();
  const { address } = await serve(t, ['--database', url]);
  const connections: [string, Connection][] = [];
  for (const token of tokens) {
    const connection = new Connection(address);
    t.after(() => connection.socket.destroy());
    await once(connection.socket, 'connect');
    connections.push([token, connection]);
  }
  for (const [token, connection] of connections) {
    connection.write(`GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  }
  const statuses = connections.map(async ([, connection]) => (await connection.answer())?.status);
  assert.deepEqual(new Set(await Promise.all(statuses)), new Set([200]));
}
