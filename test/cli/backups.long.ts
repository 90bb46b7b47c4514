import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { backupName } from '../../src/sqlite/backup-folder.ts';
import { call } from '../support/app.ts';
import { runOk, serve, start } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { listen } from '../support/listen.ts';
import { seededRandom } from '../support/random.ts';
import { firstSeed } from '../support/rounds.ts';
import { tempFolder } from '../support/temp.ts';

it('makes 100 backups while clients write, each with every change before it', async (t) => {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 5_000);
  const folder = tempFolder(t);
  const acknowledged: number[] = [];
  const faults: unknown[] = [];
  let [made, before] = [0, 0];
  const monitor = createServer((_, response) => {
    try {
      const [name = ''] = backupsIn(folder).slice(-1);
      const found = new Set(soundIds(join(folder, name)));
      assert.deepEqual(
        acknowledged.slice(0, before).filter((id) => !found.has(id)),
        [],
      );
      assert.ok(backupsIn(folder).length <= 3);
    } catch (error) {
      faults.push(error);
    }
    made++;
    before = acknowledged.length; // the next backup begins after the response
    response.end();
  });
  const heartbeat = `http://127.0.0.1:${await listen(t, monitor)}`;
  const options = ['--backup-every', '1s', '--backup-keep', '3', '--backup-heartbeat', heartbeat];
  const service = await serve(t, ['--database', url, '--backup-dir', folder, ...options]);
  const isRunning = () => made < 100;
  const write = async () => {
    while (isRunning()) {
      const json = { name: 'Monstera', tag: `${made}` };
      const answer = await call(`${service.address}/plants?fields=id`, 'POST', { token, json });
      assert.equal(answer.status, 201, answer.text);
      acknowledged.push((answer.json as { id: number }).id);
      await pause(10); // leaves time for the backups
    }
  };
  await Promise.all(Array.from({ length: 4 }, write));
  assert.equal(await service.stop(), 0);
  assert.deepEqual(faults, []);
  assert.doesNotMatch(service.log(), /backup failed/);
  t.diagnostic(`${acknowledged.length} changes`);
});

it('has no name for a backup that cannot be restored, whenever it is killed', async (t) => {
  t.diagnostic(`PLANT_STORE_TEST_SEED=${firstSeed}`);
  const random = seededRandom(firstSeed);
  const { path, url } = databaseFile(t);
  await fill(path, 5_000);
  const expected = soundIds(path);
  const folder = tempFolder(t);
  const backUp = (at: number) =>
    start(['backup', join(folder, backupName(new Date(at * 1_000))), '--database', url]);
  const startedMs = Date.now();
  await once(backUp(0), 'close');
  const durationMs = Date.now() - startedMs;
  const verified = new Set<string>();
  for (let at = 1, killed = 0; killed < 50; at++) {
    const child = backUp(at);
    const closed = once(child, 'close');
    await pause(durationMs * (0.2 + random())); // before, only Node starts
    if (child.kill('SIGKILL')) killed++;
    await closed;
    for (const name of backupsIn(folder).filter((one) => !verified.has(one))) {
      const target = databaseFile(t);
      await runOk(['restore', join(folder, name), '--database', target.url]);
      assert.deepEqual(soundIds(target.path), expected, name);
      await runOk(['verify', '--database', target.url]);
      verified.add(name);
    }
  }
  await once(backUp(10_000), 'close');
  assert.deepEqual(readdirSync(folder).toSorted(), backupsIn(folder), 'nothing else is left');
  t.diagnostic(`${verified.size} were complete before`);
});

function backupsIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('Z.backup'))
    .toSorted();
}
