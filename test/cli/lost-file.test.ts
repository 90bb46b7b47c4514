/**
 * What a person does to the file of a service that runs: moves it, deletes it, replaces it, truncates
 * it. Nothing may be acknowledged that a restart would not find.
 */
import assert from 'node:assert/strict';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { describe, it } from 'node:test';
import { runHere } from '../support/command.ts';
import { soundIds } from '../support/database.ts';
import { until } from '../support/until.ts';
import { assertRefused, plants, start, truncate } from './lost-file.ts';

describe('a database file in use', { concurrency: 2 }, () => {
  it('is detected as moved, and served again once it is back', async (t) => {
    const started = await start(t);
    const { path, service, create, statusOf, count } = started;
    for (let round = 1; round <= 2; round++) {
      renameSync(path, `${path}.moved`);
      assert.equal((await create('lost')).status, 503, 'at once');
      await until('the loss is detected', () => count('database file lost') === round);
      await until('it is not ready', async () => (await statusOf('/readyz')) === 503);
      assert.equal(await statusOf('/plants'), 503);
      renameSync(`${path}.moved`, path);
      await until('it is found again', async () => (await statusOf('/readyz')) === 200);
      assert.equal((await create('after')).status, 201);
    }
    assert.equal(count('database file found again'), 2);
    assert.match(
      service.log(),
      /plants\.db was moved or deleted while it was in use\. Put it back/,
    );
    assert.equal(await service.stop(), 0);
    assert.equal(soundIds(path).length, plants + 3);
  });

  it('is detected as deleted, and a restart refuses to create an empty one', async (t) => {
    const started = await start(t);
    const { path, url, service } = started;
    rmSync(path);
    await assertRefused(started, /was moved or deleted/);
    await service.stop();
    for (const command of [['serve', '--port', '0'], ['token', 'create', 'bob'], ['migrate']]) {
      const { status, stderr } = await runHere([...command, '--database', url]);
      assert.equal(status, 1);
      assert.match(stderr, /plants\.db-wal and .* belong to a database that is no longer at /);
    }
    assert.equal(existsSync(path), false);
  });

  it('is detected as truncated if half of it is cut off, and no request waits', (t) =>
    truncate(t, 0.5));
});
