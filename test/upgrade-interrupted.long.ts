/**
 * Upgrades that are interrupted, or that an older version must not undo.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { call } from './support/app.ts';
import { run, runOk, serve } from './support/command.ts';
import { databaseFile, fill } from './support/database.ts';
import { until } from './support/until.ts';
import { newerProgram } from './support/versions.ts';
import { backfill, before, blocked, column, done, indexOfSqlite, newerWords } from './upgrade.ts';

test('SQLite: an upgrade is in a backup: an older version can create one, but not restore it', async (t) => {
  const { folder, path, url } = databaseFile(t);
  await fill(path, 3);
  const program = newerProgram(t, { older: 'continue', sqlite: indexOfSqlite });
  await runOk(['migrate', '--database', url], { program });
  const backup = join(folder, 'backup.db');
  await runOk(['backup', backup, '--database', url]);
  const args = ['restore', backup, '--database', `sqlite:${join(folder, 'restored.db')}`];
  const { status, stderr } = await run(args);
  assert.equal(status, 1);
  assert.match(stderr, newerWords);
  await runOk(args, { program });
});

describe('PostgreSQL: an upgrade', { concurrency: 3 }, () => {
  test('has changed nothing if it gets SIGKILL half-way, and another process completes it', async (t) => {
    const setting = await blocked(t, column + backfill, 'SELECT FROM plant_store.plants');
    const first = setting.migrate();
    await until('it waits for the lock', setting.waits);
    first.child.kill('SIGKILL');
    await first.ended;
    assert.equal(await setting.number(), before);
    const service = await serve(t, [], setting);
    const ready = async () => (await call(`${service.address}/readyz`, 'GET')).status;
    assert.equal(await ready(), 503);
    assert.match(service.log(), /the database is being upgraded to a newer schema/);
    await setting.unblock();
    await until('the replica is ready', async () => (await ready()) === 200);
    assert.equal(await setting.number(), done);
    assert.equal(await setting.read(), 200);
  });

  test('is logged with its cause if it fails, and not retried with each request', async (t) => {
    const setting = await blocked(t, `SELECT nextval('attempts'); SELECT 1 / 0;`, 'SELECT 1');
    await setting.select('CREATE SEQUENCE attempts'); // which no rollback sets back
    const service = await serve(t, [], setting);
    const ready = async () => (await call(`${service.address}/readyz`, 'GET')).status;
    await until('it is in the log', async () => {
      assert.equal(await ready(), 503);
      return service.log().includes('division by zero');
    });
    for (let request = 0; request < 20; request++) assert.equal(await ready(), 503);
    assert.deepEqual(await setting.select('SELECT last_value FROM attempts'), [
      { last_value: '1' },
    ]);
    assert.equal(await setting.read(), 200);
  });

  test('does not block other requests while it waits for a lock', async (t) => {
    const setting = await blocked(t, column, 'SELECT FROM plant_store.plants');
    const { ended } = setting.migrate();
    const statuses = new Set<number>();
    const over = new AbortController();
    t.after(() => over.abort());
    const reading = (async () => {
      while (!over.signal.aborted) statuses.add(await setting.read());
    })();
    for (const waits of [true, false, true, false])
      await until(`it waits: ${waits}`, async () => (await setting.waits()) === waits, 20_000);
    over.abort();
    await reading;
    assert.deepEqual([...statuses], [200]);
    await setting.unblock();
    assert.deepEqual(await ended, [0, null]);
    assert.equal(await setting.number(), done);
  });

  for (const [how, sql, end] of [
    ['fails', 'SELECT 1 / 0;', [1, null]],
    ['gets a signal', column, [null, 'SIGINT']],
  ] as const)
    test(`lets the older versions that it refuses serve again if it ${how}`, async (t) => {
      const setting = await blocked(t, sql, 'SELECT 1', 'refused');
      const { child, ended } = setting.migrate();
      await until('older versions stop', async () => (await setting.read()) === 503, 20_000);
      if (end[1] !== null) child.kill(end[1]);
      assert.deepEqual(await ended, end);
      assert.equal(await setting.number(), before);
      await until('older versions serve again', async () => (await setting.read()) === 200);
    });
});
