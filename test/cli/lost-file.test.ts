/**
 * A service whose database file is lost. test/sqlite/storage.test.ts has all ways to lose one.
 */
import assert from 'node:assert/strict';
import { existsSync, renameSync } from 'node:fs';
import { describe, it } from 'node:test';
import { call } from '../support/app.ts';
import { runHere, runOk } from '../support/command.ts';
import { soundIds } from '../support/database.ts';
import { startService } from '../support/service.ts';

describe('a service whose database file is lost', { concurrency: 2 }, () => {
  for (const workers of [1, 2]) {
    it(`stops with status 3, acknowledges nothing more, and starts no empty one, with ${workers} workers`, async (t) => {
      const args = ['--workers', String(workers)];
      const { path, url, service, token } = await startService(t, { plants: 1, args });
      const json = { name: 'a' };
      const create = () =>
        call(`${service.address}/plants`, 'POST', { token, json }).then(
          ({ status }) => status,
          () => 'closed',
        );
      assert.equal(await create(), 201);
      renameSync(path, `${path}.moved`);
      for (let status = await create(); status !== 'closed'; status = await create()) {
        assert.equal(status, 503);
      }
      assert.equal(await service.ended, 3);
      const logged = service.log().split('"msg":"storage failed"').length - 1;
      assert.ok(logged >= 1 && logged <= workers, service.log());
      assert.match(service.log(), /^error: .*plants\.db was moved or deleted .* Put it back/m);
      assert.doesNotMatch(service.log(), /^ +at /m);

      for (const command of [['serve', '--port', '0'], ['token', 'create', 'bob'], ['migrate']]) {
        const { status, stderr } = await runHere([...command, '--database', url]);
        assert.equal(status, 1);
        assert.match(stderr, /plants\.db-wal and .* belong to a database that is no longer at /);
      }
      assert.equal(existsSync(path), false);

      renameSync(`${path}.moved`, path);
      await runOk(['migrate', '--database', url]); // opens it as a service does
      assert.deepEqual(soundIds(path), [1, 2]);
    });
  }
});
