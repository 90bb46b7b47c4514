import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { pino } from 'pino';
import { buildApp } from '../../src/http/app.ts';
import { testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';

test('logs at most 20 failed requests of a kind per second', async (t) => {
  const storage = await (await testDatabase(t)).open();
  const lines = new PassThrough();
  let written = '';
  lines.on('data', (bytes) => (written += String(bytes)));
  // Any client can request /readyz from a service that is stopping.
  const stopping = AbortSignal.abort();
  const app = buildApp({ storage, log: pino(lines), baseUrl: '', stopping });
  t.after(async () => {
    await app.close();
    await storage[Symbol.asyncDispose]();
  });
  const fail = async () => assert.equal((await app.inject('/readyz')).statusCode, 503);
  const entries = () =>
    written
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
  const counted = () =>
    entries().reduce(
      (count, { suppressed = 0 }: { suppressed?: number }) => count + 1 + suppressed,
      0,
    );

  const startedMs = performance.now();
  const failures = 1_000;
  for (let at = 0; at < failures; at++) await fail();
  const seconds = Math.ceil((performance.now() - startedMs) / 1_000);
  assert.ok(entries().length <= 20 * seconds);
  assert.ok(entries().length >= 20);

  let more = 0;
  await until('the next entry counts those without one', async () => {
    more++;
    await fail();
    return counted() === failures + more;
  });
});
