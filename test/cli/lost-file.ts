/**
 * A service whose database file is lost.
 */
import assert from 'node:assert/strict';
import { statSync, truncateSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { call } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';
import { until } from '../support/until.ts';

const unavailable = /"\/problems\/storage-unavailable"/;
export const plants = 2_000; // 1.6 MB, so that no cache holds all of it

export async function start(t: TestContext, more: readonly string[] = []) {
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
export async function assertRefused(
  { service, create, read, statusOf, count }: Started,
  why: RegExp,
) {
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

/** Cuts off a part of the file, which leaves `share` of it. */
export async function truncate(t: TestContext, share: number): Promise<void> {
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
}
