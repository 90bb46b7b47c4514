/**
 * What the service publishes on node:diagnostics_channel, for those who measure it.
 */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { TestContext } from 'node:test';
import { startApp } from './support/app.ts';
import { exchange } from './support/raw.ts';
import { it } from './support/storages.ts';

/** All that is published on the channel until the test ends. */
function messagesOf<T>(t: TestContext, channel: string): T[] {
  const messages: T[] = [];
  const add = (message: unknown) => void messages.push(message as T); // as the channel documents it
  subscribe(channel, add);
  t.after(() => unsubscribe(channel, add));
  return messages;
}

it('publishes every commit, and every problem with its kind', async (t) => {
  const { user, call, port } = await startApp(t);
  const alice = await user('alice');
  const commits = messagesOf<{ writes: number; durationMs: number }>(t, 'plant-store:commit');
  const problems = messagesOf(t, 'plant-store:error');
  const startedMs = performance.now();
  const create = (name: string) => alice('POST', '/plants', { json: { name } });
  await Promise.all(Array.from({ length: 20 }, (_, at) => create(`plant ${at}`)));
  await alice('DELETE', '/plants/1');
  const tookMs = performance.now() - startedMs;
  const writes = commits.map((commit) => commit.writes);
  assert.equal(
    writes.reduce((sum, count) => sum + count),
    21,
  );
  for (const { durationMs } of commits) assert.ok(durationMs > 0 && durationMs < tookMs);
  await call('GET', '/plants');
  await alice('GET', '/plants');
  await alice('GET', '/plants/1');
  await exchange(port, 'nonsense\r\n\r\n'); // it is not even HTTP
  const kinds = ['invalid-token', 'plant-not-found', 'invalid-request'];
  assert.deepEqual(
    problems,
    kinds.map((kind) => ({ kind })),
  );
});
