import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { it } from 'node:test';
import { call, type Answer } from '../support/app.ts';
import { executable, runOk, serve } from '../support/command.ts';
import { tempFolder } from '../support/temp.ts';

const blockBytes = 512; // what `ulimit -f` of a POSIX shell counts in

it('answers a full disk with 503, keeps what it acknowledged, and reads on', async (t) => {
  const path = join(tempFolder(t), 'plants.db');
  const database = `sqlite:${path}`;
  const token = await runOk(['token', 'create', 'alice', '--database', database]);
  const limit = Math.ceil((statSync(path).size + 2_000_000) / blockBytes);
  // A limit on the size of a file is as much of a full disk as a test can make anywhere.
  const script = `trap '' XFSZ; ulimit -f ${limit}; exec "$0" "$@"`;
  const args = [
    executable,
    'serve',
    '--port',
    '0',
    '--database',
    database,
    '--log-level',
    'silent',
  ];
  const child = spawn('sh', ['-c', script, process.execPath, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  t.after(() => child.kill('SIGKILL'));
  let address = '';
  for await (const line of createInterface({ input: child.stdout })) {
    [, address = ''] = /listens on (\S+)$/.exec(line) ?? [];
    if (address !== '') break;
  }

  const acknowledged: number[] = [];
  let refused: Answer | undefined;
  for (let id = 1; id <= 5_000 && refused === undefined; id++) {
    const json = { id, name: 'x'.repeat(200) };
    const answer = await call(`${address}/plants`, 'POST', { token, json });
    if (answer.status === 201) acknowledged.push(id);
    else refused = answer;
  }
  assert.ok(refused && acknowledged.length > 50);
  assert.equal(refused.status, 503, refused.text);
  assert.equal(refused.headers.get('retry-after'), '60');
  assert.partialDeepStrictEqual(refused.json, { type: 'urn:plant-store:problem:storage-full' });
  assert.doesNotMatch(refused.text, /sqlite|SQL|disk I\/O|\.db/);

  const list = async (from: string) => {
    const { status, json } = await call(`${from}/plants?fields=id`, 'GET', { token });
    assert.equal(status, 200);
    return (json as { id: number }[]).map(({ id }) => id);
  };
  assert.deepEqual(await list(address), acknowledged);
  // There may be room again by then, as the log of writes was taken in: either answer is honest.
  const deleted = await call(`${address}/plants/1`, 'DELETE', { token });
  assert.ok(deleted.status === 204 || deleted.status === 503, deleted.text);
  if (deleted.status === 204) acknowledged.shift();
  child.kill('SIGTERM');
  assert.deepEqual((await closed)[0], 0);

  const again = await serve(t, ['--database', database]);
  assert.deepEqual(await list(again.address), acknowledged);
  assert.equal((await call(`${again.address}/plants/2`, 'DELETE', { token })).status, 204);
});

it('answers 503 where another process holds the database for too long, and recovers', async (t) => {
  const path = join(tempFolder(t), 'plants.db');
  const database = ['--database', `sqlite:${path}`, '--log-level', 'silent'];
  const token = await runOk(['token', 'create', 'alice', ...database.slice(0, 2)]);
  const { address } = await serve(t, database);
  const other = new DatabaseSync(path);
  t.after(() => other.close());
  other.exec('BEGIN IMMEDIATE');

  const create = () => call(`${address}/plants`, 'POST', { token, json: { name: 'a' } });
  const refused = await create();
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  assert.partialDeepStrictEqual(refused.json, {
    type: 'urn:plant-store:problem:storage-unavailable',
  });
  assert.equal((await call(`${address}/plants`, 'GET', { token })).text, '[]');
  other.exec('ROLLBACK');
  assert.equal((await create()).status, 201);
});
