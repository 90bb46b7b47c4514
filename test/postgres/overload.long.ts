/**
 * Clients without a token cannot slow down those with one: floods without valid tokens run beside users
 * and a balancer that checks the health of the service.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { addToken, call } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { Flood } from '../support/flood.ts';
import { shared } from '../support/shared.ts';
import { testDatabase } from '../support/storages.ts';

/** Linux has all of 127.0.0.0/8. */
const elsewhere = process.platform === 'linux' ? '127.0.0.2' : '127.0.0.1';
const measuredMs = 2_000;
const pauseMs = 5;
const newTokenEachMs = 100;
const healthEachMs = 100;
/** The flood has a thousand requests in progress on two cores that others use, too. */
const maxSlower = 100;
const minQuietP99Ms = 20;

interface Measured {
  statuses: readonly number[];
  p99Ms: number;
  count: number;
}

/** Sends one request after another, at most one each `eachMs`. */
async function measure(ask: () => Promise<number>, eachMs: number): Promise<Measured> {
  const statuses = new Set<number>();
  const tookMs: number[] = [];
  for (const endMs = performance.now() + measuredMs; performance.now() < endMs;) {
    const startedMs = performance.now();
    statuses.add(await ask());
    tookMs.push(performance.now() - startedMs);
    await pause(Math.max(pauseMs, startedMs + eachMs - performance.now()));
  }
  tookMs.sort((a, b) => a - b);
  const count = tookMs.length;
  return { statuses: [...statuses], p99Ms: tookMs[Math.floor(count * 0.99)] ?? 0, count };
}

/** A service with a user, and more tokens of theirs that were not used before. */
const world = shared(async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  await using storage = await database.open();
  const token = await addToken(storage, 'alice');
  const newTokens: string[] = [];
  for (let at = 0; at < (3 * measuredMs) / newTokenEachMs; at++) {
    newTokens.push(await addToken(storage, 'alice'));
  }
  const { address } = await serve(t, [], { env: { PLANT_STORE_DATABASE: database.url } });
  const list = async (used = token) =>
    (await call(`${address}/plants?limit=20`, 'GET', { token: used })).status;
  const readyz = async () => (await call(`${address}/readyz`, 'GET')).status;
  assert.equal(await readyz(), 200);
  const quiet = await measure(list, pauseMs);
  return { address, newTokens, list, readyz, quiet };
});

describe('PostgreSQL: a flood without valid tokens', () => {
  for (const [what, target, withUnknownToken, localAddress] of [
    ['of health checks', '/readyz', false, elsewhere],
    ['of made-up tokens from another address', '/plants?limit=20', true, elsewhere],
    ['of made-up tokens through the same proxy', '/plants?limit=20', true, '127.0.0.1'],
  ] as const) {
    it(`${what} leaves the service ready and its users served`, async (t) => {
      const { address, newTokens, list, readyz, quiet } = world();
      const port = Number(new URL(address).port);
      const options = { port, localAddress, connections: 1_100, depth: 4, target };
      const flood = await Flood.start(t, { ...options, withUnknownToken });
      const [users, newUsers, health] = await Promise.all([
        measure(list, pauseMs),
        measure(() => list(newTokens.pop()), newTokenEachMs),
        measure(readyz, healthEachMs),
      ]);
      const answers = await flood.stop();
      t.diagnostic(JSON.stringify({ quiet, users, newUsers, health, answers }));
      assert.deepEqual(health.statuses, [200]);
      assert.deepEqual(users.statuses, [200]);
      const bound = maxSlower * Math.max(quiet.p99Ms, minQuietP99Ms);
      assert.ok(users.p99Ms < bound, `${users.p99Ms} ms`);
      assert.deepEqual(newUsers.statuses, [200]);
      assert.ok(newUsers.p99Ms < bound, `${newUsers.p99Ms} ms`);
    });
  }
});
