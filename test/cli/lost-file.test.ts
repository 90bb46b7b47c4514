/**
 * A service whose database file is lost. test/sqlite/storage.test.ts has all ways to lose one.
 */
import assert from 'node:assert/strict';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { describe, it, type TestContext } from 'node:test';
import { call } from '../support/app.ts';
import { runHere, serve } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';

async function start(t: TestContext, ...args: readonly string[]) {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 1);
  const service = await serve(t, ['--database', url, ...args]);
  const create = () =>
    call(`${service.address}/plants`, 'POST', { token, json: { name: 'a' } }).then(
      ({ status }) => status,
      () => 'closed',
    );
  assert.equal(await create(), 201);
  /** Sends writes until the service is gone. */
  const ended = async () => {
    for (let status = await create(); status !== 'closed'; status = await create()) {
      assert.equal(status, 503);
    }
    return service.ended;
  };
  return { path, url, service, ended };
}

describe('a service whose database file is lost', { concurrency: 2 }, () => {
  for (const workers of [1, 2]) {
    it(`stops with status 3 and acknowledges nothing more, with ${workers} workers`, async (t) => {
      const { path, url, service, ended } = await start(t, '--workers', String(workers));
      renameSync(path, `${path}.moved`);
      assert.equal(await ended(), 3);
      const logged = service.log().split('"msg":"storage failed"').length - 1;
      assert.ok(logged >= 1 && logged <= workers, service.log());
      assert.match(service.log(), /^error: .*plants\.db was moved or deleted .* Put it back/m);
      assert.doesNotMatch(service.log(), /^ +at /m);

      renameSync(`${path}.moved`, path);
      const again = await serve(t, ['--database', url]);
      assert.equal(await again.stop(), 0);
      assert.deepEqual(soundIds(path), [1, 2]);
    });
  }

  it('is not replaced by an empty one at the next start', async (t) => {
    const { path, url, ended } = await start(t);
    rmSync(path);
    assert.equal(await ended(), 3);
    for (const command of [['serve', '--port', '0'], ['token', 'create', 'bob'], ['migrate']]) {
      const { status, stderr } = await runHere([...command, '--database', url]);
      assert.equal(status, 1);
      assert.match(stderr, /plants\.db-wal and .* belong to a database that is no longer at /);
    }
    assert.equal(existsSync(path), false);
  });
});
