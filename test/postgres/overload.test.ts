/**
 * Whoever has no token takes nothing from those who have one: floods that need none, beside users and a
 * balancer that asks for the health of the service.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { addToken, call } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { Flood } from '../support/flood.ts';
import { testDatabase } from '../support/storages.ts';

/** Linux has all of 127.0.0.0/8. */
const elsewhere = process.platform === 'linux' ? '127.0.0.2' : '127.0.0.1';
const watchedMs = 2_000;
const pauseMs = 5;
const newTokenEachMs = 100;
const healthEachMs = 100;
/** The flood has a thousand requests in progress on two cores that others use, too. */
const maxSlower = 100;
const minQuietP99Ms = 20;

interface Watched {
  statuses: readonly number[];
  p99Ms: number;
  count: number;
}

/** Asks one after another, or so often. */
async function watch(ask: () => Promise<number>, eachMs: number): Promise<Watched> {
  const statuses = new Set<number>();
  const tookMs: number[] = [];
  for (const endMs = performance.now() + watchedMs; performance.now() < endMs;) {
    const startedMs = performance.now();
    statuses.add(await ask());
    tookMs.push(performance.now() - startedMs);
    await pause(Math.max(pauseMs, startedMs + eachMs - performance.now()));
  }
  tookMs.sort((a, b) => a - b);
  const count = tookMs.length;
  return { statuses: [...statuses], p99Ms: tookMs[Math.floor(count * 0.99)] ?? 0, count };
}

describe('PostgreSQL: a flood that needs no token', () => {
  const cleanups: (() => unknown)[] = [];
  const scope = { after: (cleanup: () => unknown) => void cleanups.push(cleanup) };
  after(async () => {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  });

  let address = '';
  let token = '';
  /** Each is used once. */
  const newTokens: string[] = [];
  let quiet: Watched;
  const list = async (used: string) =>
    (await call(`${address}/plants?limit=20`, 'GET', { token: used })).status;
  const readyz = async () => (await call(`${address}/readyz`, 'GET')).status;

  before(async () => {
    const database = await testDatabase(scope, 'PostgreSQL');
    await using storage = await database.open();
    token = await addToken(storage, 'alice');
    for (let at = 0; at < (3 * watchedMs) / newTokenEachMs; at++) {
      newTokens.push(await addToken(storage, 'alice'));
    }
    const env = { PLANT_STORE_DATABASE: database.url };
    ({ address } = await serve(scope, [], { env }));
    assert.equal(await readyz(), 200);
    quiet = await watch(() => list(token), pauseMs);
  });

  for (const [what, target, withUnknownToken, localAddress] of [
    ['of health checks', '/readyz', false, elsewhere],
    ['of made-up tokens from another address', '/plants?limit=20', true, elsewhere],
    ['of made-up tokens through the same proxy', '/plants?limit=20', true, '127.0.0.1'],
  ] as const) {
    it(`${what} leaves the service ready and its users served`, async (t) => {
      const port = Number(new URL(address).port);
      const options = { port, localAddress, connections: 1_100, depth: 4, target };
      const flood = await Flood.start({ ...options, withUnknownToken });
      const [users, newUsers, health] = await Promise.all([
        watch(() => list(token), pauseMs),
        watch(() => list(newTokens.pop() ?? token), newTokenEachMs),
        watch(readyz, healthEachMs),
      ]);
      const answers = await flood.stop();
      t.diagnostic(JSON.stringify({ quiet, users, newUsers, health, answers }));
      assert.deepEqual(health.statuses, [200]);
      assert.deepEqual(users.statuses, [200]);
      const bound = maxSlower * Math.max(quiet.p99Ms, minQuietP99Ms);
      assert.ok(users.p99Ms < bound, `${users.p99Ms} ms`);
      // A new token cannot be told from a made-up one: it waits in turn with those of its own address.
      if (localAddress === '127.0.0.1') return;
      assert.deepEqual(newUsers.statuses, [200]);
      assert.ok(newUsers.p99Ms < bound, `${newUsers.p99Ms} ms`);
    });
  }
});
