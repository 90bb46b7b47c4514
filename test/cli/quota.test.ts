/**
 * The quotas of `serve`, and what happens to a client that reaches one. test/quota.test.ts tests that they are exact.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { call, startApp } from '../support/app.ts';
import { run, runHere, serve } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';

async function start(t: TestContext, args: readonly string[], env: Record<string, string> = {}) {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 2);
  const { address } = await serve(t, ['--database', url, ...args], { env });
  const create = (json: object = { name: 'Fern' }) =>
    call(`${address}/plants`, 'POST', { token, json });
  const remove = (id: number) => call(`${address}/plants/${id}`, 'DELETE', { token });
  return { create, remove };
}

describe('the quotas of serve', { concurrency: 2 }, () => {
  it('limit the plants of a user: further creates get 403 until one is deleted', async (t) => {
    const { create, remove } = await start(t, ['--max-plants-per-user', '3']);
    assert.equal((await create()).status, 201);
    const { status, headers, json } = await create();
    assert.deepEqual([status, headers.get('www-authenticate')], [403, null]);
    assert.deepEqual(json, {
      type: '/problems/quota-exceeded',
      title: 'The quota of plants is used up',
      status: 403,
      detail:
        'A user of this service can own at most 3 plants. Delete plants that you own, or ask the operator for a higher limit.',
    });
    assert.equal((await create({ name: 'Fern', id: 1 })).status, 409);
    assert.equal((await remove(1)).status, 204);
    assert.equal((await create({ name: 'Fern', id: 1 })).status, 201);
  });

  it('hold for all workers together', async (t) => {
    const env = { PLANT_STORE_MAX_PLANTS_PER_USER: '9', PLANT_STORE_MAX_PLANTS_PER_STORE: '7' };
    const { create } = await start(t, ['--workers', '2'], env);
    const responses = await Promise.all(Array.from({ length: 20 }, () => create()));
    assert.equal(responses.filter(({ status }) => status === 201).length, 5);
    for (const { status, text } of responses) {
      if (status !== 201)
        assert.match(text, /"status":403,"detail":"A store .* at most 7 plants\./);
    }
  });

  it('are numbers from 1', async () => {
    for (const flag of ['--max-plants-per-user', '--max-plants-per-store']) {
      const { status, stderr } = await runHere(['serve', flag, '0']);
      assert.equal(status, 2);
      assert.match(stderr, /Use an integer from 1 to 9007199254740991\./);
    }
  });
});

it('an import that reaches a quota stops, and continues when there is room', async (t) => {
  const app = await startApp(t, { quotas: { perUser: 50, perStore: undefined } });
  const token = await app.token('alice');
  const env = { PLANT_STORE_URL: app.address, PLANT_STORE_TOKEN: token };
  const count = async () => {
    const { json } = await app.call('GET', '/plants', { token });
    return (json as unknown[]).length; // a list is an array
  };
  for (let id = 1; id <= 10; id++)
    await app.call('POST', '/plants', { token, json: { name: 'Oak' } });
  const file = join(tempFolder(t), 'plants.csv');
  writeFileSync(file, `name\n${'Fern\n'.repeat(50)}`);
  const stopped = await run(['plants', 'import', file], { env });
  assert.equal(stopped.status, 1);
  assert.match(
    stopped.stderr,
    /^The import is not complete\. Run the same command again to continue\.\nerror: A user of this service can own at most 50 plants\. /,
  );
  assert.equal(await count(), 50);
  for (let id = 1; id <= 10; id++) await app.call('DELETE', `/plants/${id}`, { token });
  const { status, stderr } = await run(['plants', 'import', file], { env });
  assert.equal(status, 0);
  assert.match(stderr, /^line 2: already added as plant 11\n/);
  assert.equal(await count(), 50);
});
