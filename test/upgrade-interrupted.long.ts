/**
 * Upgrades that are interrupted, or that an older version must not undo.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { call } from './support/app.ts';
import { run, runOk, serve } from './support/command.ts';
import { databaseFile, fill } from './support/database.ts';
import { until } from './support/until.ts';
import { newerProgram } from './support/versions.ts';
import {
  before,
  blocked,
  column,
  done,
  index,
  indexOfSqlite,
  newerWords,
  table,
  writes,
} from './upgrade.ts';

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
  test('is completed by another process if the first one gets SIGKILL half-way', (t) =>
    isCompletedAfter(t, 'SIGKILL'));

  test('is released to other processes at once if the service stops', async (t) => {
    const setting = await blocked(t, index, writes);
    const service = await serve(t, [], setting);
    await until('the index is being made', async () => (await setting.index()) === false);
    assert.equal(await service.stop(), 0);
    await until('its session ends', async () => (await setting.sessions()).length === 0, 5_000);
    const next = setting.migrate();
    await setting.unblock();
    assert.deepEqual(await next.ended, [0, null]);
    assert.equal(await setting.index(), true);
  });

  test('does not affect older versions if it gets a signal before its first statement', async (t) => {
    const setting = await blocked(t, column, 'SELECT 1', 'refused');
    const { child, ended } = setting.migrate();
    await until('older versions stop', async () => (await setting.read()) === 503, 20_000);
    child.kill('SIGINT');
    assert.deepEqual(await ended, [null, 'SIGINT']);
    assert.equal(await setting.number(), before);
    await until('its session ends', async () => (await setting.sessions()).length === 0, 5_000);
    await until('older versions serve again', async () => (await setting.read()) === 200);
  });

  test('is logged with its cause if it fails, and not retried with each request', async (t) => {
    const setting = await blocked(
      t,
      `CREATE SEQUENCE IF NOT EXISTS plant_store.attempts;
       SELECT nextval('plant_store.attempts');
       SELECT 1 / 0;`,
      'SELECT 1',
    );
    const service = await serve(t, [], setting);
    const ready = async () => (await call(`${service.address}/readyz`, 'GET')).status;
    await until('it is in the log', async () => {
      assert.equal(await ready(), 503);
      return service.log().includes('division by zero');
    });
    for (let request = 0; request < 20; request++) assert.equal(await ready(), 503);
    assert.deepEqual(await setting.select('SELECT last_value FROM plant_store.attempts'), [
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
    for (const waits of [true, false, true, false]) {
      const isSo = async () => {
        const [session] = await setting.sessions();
        return (session?.['waits'] === 'Lock') === waits;
      };
      await until(`it waits: ${waits}`, isSo, 20_000);
    }
    over.abort();
    await reading;
    assert.deepEqual([...statuses], [200]);
    await setting.unblock();
    assert.deepEqual(await ended, [0, null]);
    assert.equal(await setting.number(), done);
  });

  test('is completed by another process if the first one gets SIGSTOP half-way, once its session has been idle', (t) =>
    isCompletedAfter(t, 'SIGSTOP'));

  test('does not affect older versions if its first statement fails', async (t) => {
    const setting = await blocked(t, 'SELECT 1 / 0;', 'SELECT 1', 'refused');
    const { ended } = setting.migrate();
    await until('older versions stop', async () => (await setting.read()) === 503, 20_000);
    assert.deepEqual(await ended, [1, null]);
    assert.equal(await setting.number(), before);
    await until('its session ends', async () => (await setting.sessions()).length === 0, 5_000);
    await until('older versions serve again', async () => (await setting.read()) === 200);
  });
});

/** The first process gets the signal half-way, and another one completes the upgrade. */
async function isCompletedAfter(t: TestContext, signal: 'SIGKILL' | 'SIGSTOP'): Promise<void> {
  const setting = await blocked(t, table + index, writes);
  const first = setting.migrate();
  await until('the index is being made', async () => (await setting.index()) === false);
  const [{ pid } = {}] = await setting.sessions();
  first.child.kill(signal);
  const second = setting.migrate();
  const service = await serve(t, [], setting);
  const ready = async () => (await call(`${service.address}/readyz`, 'GET')).status;
  assert.equal(await ready(), 503);
  assert.match(service.log(), /the database is being upgraded to a newer schema/);
  // The server goes on with the statement of a process that was paused.
  if (signal === 'SIGSTOP') await setting.unblock();
  await until(
    'the first session ends',
    async () => (await setting.sessions()).every((one) => one['pid'] !== pid),
    signal === 'SIGKILL' ? 5_000 : 30_000,
  );
  assert.equal(await setting.read(), 200);
  first.child.kill('SIGCONT');
  if (signal === 'SIGKILL') await setting.unblock();
  assert.deepEqual(await second.ended, [0, null]);
  assert.deepEqual(await first.ended, signal === 'SIGKILL' ? [null, signal] : [0, null]);
  assert.equal(await setting.index(), true);
  assert.equal(await setting.number(), done);
  await until('the replica is ready', async () => (await ready()) === 200);
}
