/**
 * More ways to lose the file of a running service.
 */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, it } from 'node:test';
import { run } from '../support/command.ts';
import { soundIds } from '../support/database.ts';
import { until } from '../support/until.ts';
import { assertRefused, plants, start, truncate } from './lost-file.ts';

describe('a database file in use', { concurrency: 2 }, () => {
  it('is detected as replaced by another file', async (t) => {
    const started = await start(t);
    copyFileSync(started.path, `${started.path}.copy`);
    renameSync(`${started.path}.copy`, started.path);
    await assertRefused(started, /was replaced by another file .*\. Put the original file back/);
  });

  it('is detected as lost if its WAL is deleted', async (t) => {
    const started = await start(t);
    rmSync(`${started.path}-wal`);
    await assertRefused(started, /plants\.db-wal was moved or deleted/);
  });

  it('is detected as lost if the WAL index is deleted, and no other process can write', async (t) => {
    const started = await start(t, ['--workers', '2']);
    const { path, url, service, create } = started;
    for (let at = 0; at < 20; at++) assert.equal((await create('kept')).status, 201);
    rmSync(`${path}-shm`);
    assert.equal((await create('lost')).status, 503);
    const { status, stderr } = await run(['token', 'create', 'bob', '--database', url]);
    assert.equal(status, 1);
    assert.match(stderr, /is locked by another process, and .*plants\.db-shm is missing/);
    await service.stop();
    assert.equal(existsSync(`${path}-wal`), false, 'the last process has checkpointed the WAL');
    assert.equal(soundIds(path).length, plants + 21);
  });

  it('is detected as lost by every worker if its folder is moved', async (t) => {
    const started = await start(t, ['--workers', '2']);
    const folder = dirname(started.path);
    renameSync(folder, `${folder}.moved`);
    t.after(() => rmSync(`${folder}.moved`, { recursive: true, force: true }));
    for (let request = 0; request < 20; request++) {
      assert.equal((await started.create('lost')).status, 503);
    }
    renameSync(`${folder}.moved`, folder);
    const isReady = async () => (await started.statusOf('/plants?limit=1')) === 200;
    await until('it is found again', isReady);
  });

  it('is detected as truncated if all of it is cut off, and no request waits', (t) =>
    truncate(t, 0));
});
