import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { PassThrough } from 'node:stream';
import { describe, test } from 'node:test';
import { Client } from 'pg';
import { pino } from 'pino';
import { buildApp } from '../../src/http/app.ts';
import { storageUnavailable } from '../../src/problem.ts';
import type { Storage } from '../../src/storage.ts';
import { call, override, startApp } from '../support/app.ts';
import { balance, noBalancer } from '../support/balancer.ts';
import { it, storageOf, testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';

/** Counts the checks of a storage, each of which takes until `held` is over. */
class Checks {
  count = 0;
  isFailing = false;
  held: Promise<void> = Promise.resolve();

  readonly of = (storage: Storage): Storage =>
    override(storage, { check: () => this.#check(storage) });

  async #check(storage: Storage): Promise<void> {
    this.count++;
    await this.held;
    if (this.isFailing) throw storageUnavailable(new Error('not now'));
    await storage.check();
  }
}

describe('/readyz', () => {
  it('shares one check among concurrent requests, whether it succeeds or fails', async (t) => {
    const checks = new Checks();
    let arrived = 0;
    const app = await startApp(t, {
      wrap: checks.of,
      addRoutes: (instance) => void instance.addHook('preHandler', async () => void arrived++),
    });
    for (const [isFailing, status] of [
      [false, 200],
      [true, 503],
      [false, 200],
    ] as const) {
      const ask = async () => (await app.call('GET', '/readyz')).status;
      const { promise, resolve } = Promise.withResolvers<void>();
      checks.isFailing = isFailing;
      checks.held = promise;
      const before = checks.count;
      const asked = Array.from({ length: 50 }, ask);
      arrived = 0;
      await until('all have arrived', () => arrived === asked.length);
      await app.call('GET', '/livez');
      resolve();
      assert.deepEqual(new Set(await Promise.all(asked)), new Set([status]));
      assert.equal(checks.count, before + 1);
    }
  });

  it('returns 503 while no write works, and 200 as soon as one would', async (t) => {
    const database = await testDatabase(t);
    const app = await startApp(t, { open: () => database.open() });
    const token = await app.token('alice');
    const create = async () =>
      (await app.call('POST', '/plants', { token, json: { name: 'Fern' } })).status;
    const state = async () => {
      const { status, json } = await app.call('GET', '/readyz');
      const { reads, writes } = json as Record<string, unknown>;
      return [status, reads, writes].join(' ');
    };
    assert.equal(await create(), 201);
    const unlock = await lockWrites(database.url);
    assert.equal(await create(), 503);
    assert.equal(await state(), '200 ok ok');
    await until('it is not ready', async () => {
      assert.equal(await create(), 503);
      return (await state()) === '503 ok unavailable';
    });
    const behind = storageOf(t) === 'SQLite' && !noBalancer && (await balance(t, [app.address]));
    if (behind !== false) {
      const write = () => call(`${behind}/plants`, 'POST', { token, json: { name: 'Fern' } });
      await until('it gets no writes', async () => /No replica/.test((await write()).text));
      assert.equal((await call(`${behind}/plants`, 'GET', { token })).status, 200);
    }
    await unlock();
    await until('it is ready without a write', async () => (await state()) === '200 ok ok');
    assert.equal(await create(), 201);
  });
});

test('a service that is stopping is not ready, and logs at most 20 failures of a kind per second', async (t) => {
  const storage = await (await testDatabase(t)).open();
  const lines = new PassThrough();
  let written = '';
  lines.on('data', (bytes) => (written += String(bytes)));
  const stop = new AbortController();
  const app = buildApp({ storage, log: pino(lines), baseUrl: '', stopping: stop.signal });
  t.after(async () => {
    await app.close();
    await storage[Symbol.asyncDispose]();
  });
  assert.equal((await app.inject('/readyz')).statusCode, 200);
  stop.abort();
  const fail = async () => {
    const { statusCode, body } = await app.inject('/readyz'); // as any client can
    assert.equal(statusCode, 503);
    assert.match(body, /The service is stopping/);
  };
  const entries = () => written.split('\n').length - 1;
  const startedMs = performance.now();
  for (let at = 0; at < 200; at++) await fail();
  const seconds = (performance.now() - startedMs) / 1_000;
  assert.ok(entries() >= 20 && entries() <= 20 * (1 + seconds), `${entries()} entries`);
  const before = entries();
  await until('there is another entry', async () => {
    await fail();
    return entries() > before;
  });
});

/** Blocks all writes to the only store, as another program can. Returns what ends that. */
async function lockWrites(url: string): Promise<() => Promise<unknown>> {
  if (url.startsWith('sqlite:')) {
    const other = new DatabaseSync(url.slice('sqlite:'.length));
    other.exec('BEGIN IMMEDIATE');
    return async () => other.close();
  }
  const other = new Client({ connectionString: url });
  await other.connect();
  await other.query('BEGIN; SELECT FROM plant_store.stores FOR UPDATE');
  return () => other.end();
}
