/**
 * What a person does to the file of a service that runs: moves it, deletes it, replaces it, truncates
 * it. Nothing may be acknowledged that a restart would not find.
 */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { call } from '../support/app.ts';
import { run, serve } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { until } from '../support/until.ts';

const unavailable = /"\/problems\/storage-unavailable"/;
const plants = 2_000; // 1.6 MB, so that no cache holds all of it

async function start(t: TestContext, more: readonly string[] = []) {
  const { path, url } = databaseFile(t);
  const token = await fill(path, plants);
  const service = await serve(t, ['--database', url, ...more]);
  const { address } = service;
  const create = (name: string) => call(`${address}/plants`, 'POST', { token, json: { name } });
  const read = (target = '/plants?limit=1') => call(address + target, 'GET', { token });
  const statusOf = async (target: string) => (await read(target)).status;
  const count = (message: string) => service.log().split(`"msg":"${message}"`).length - 1;
  assert.equal((await create('before')).status, 201); // so that the writer thread has it open
  return { path, url, service, create, read, statusOf, count };
}

type Started = Awaited<ReturnType<typeof start>>;

/** Asserts that every request is refused after at most a second, and that the loss is logged once. */
async function assertRefused({ service, create, read, statusOf, count }: Started, why: RegExp) {
  const sentMs = performance.now();
  for (let request = 0; request < 20; request++) {
    const { status, text } = await create('lost');
    assert.equal(status, 503);
    assert.match(text, unavailable);
  }
  await until('reads are refused', async () => (await statusOf('/plants?limit=1')) === 503);
  assert.ok(performance.now() - sentMs < 3_000, 'a second, and what the machine needs');
  assert.match((await read()).text, unavailable);
  await until('it is not ready', async () => (await statusOf('/readyz')) === 503);
  assert.equal(await statusOf('/livez'), 200);
  await until('the loss is logged', () => why.test(service.log()));
  assert.equal(count('database file lost'), 1);
}

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
      const { status, stderr } = await run([...command, '--database', url]);
      assert.equal(status, 1);
      assert.match(stderr, /plants\.db-wal and .* belong to a database that is no longer at /);
    }
    assert.equal(existsSync(path), false);
  });

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

  for (const [part, share] of [
    ['half of it', 0.5],
    ['all of it', 0],
  ] as const) {
    it(`is detected as truncated if ${part} is cut off, and no request waits`, async (t) => {
      const started = await start(t);
      const { path, service, statusOf } = started;
      truncateSync(path, Math.floor((statSync(path).size * share) / 4_096) * 4_096);
      const isNoticed = async () => (await statusOf('/readyz')) === 503;
      await until('the loss is detected', isNoticed, 3_000);
      for (let request = 0; request < 20; request++) {
        const sentMs = performance.now();
        const [created, list, livez] = await Promise.all([
          started.create('lost'),
          started.read('/plants'),
          statusOf('/livez'),
        ]);
        assert.deepEqual([created.status, list.status, livez], [503, 503, 200]);
        assert.ok(performance.now() - sentMs < 2_000);
      }
      assert.match(service.log(), /was truncated from \d+ to \d+ bytes while it was in use/);
      assert.equal(started.count('database file lost'), 1);
    });
  }
});
