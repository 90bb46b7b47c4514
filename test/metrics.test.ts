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

it('publishes every commit with its number of writes and its duration', async (t) => {
  const app = await startApp(t);
  const token = await app.token('alice');
  const commits = messagesOf<{ writes: number; durationMs: number }>(t, 'plant-store:commit');
  const startedMs = performance.now();
  const create = (name: string) => app.call('POST', '/plants', { token, json: { name } });
  await Promise.all(Array.from({ length: 20 }, (_, at) => create(`plant ${at}`)));
  await app.call('DELETE', '/plants/1', { token });
  const tookMs = performance.now() - startedMs;
  assert.equal(
    commits.reduce((sum, { writes }) => sum + writes, 0),
    21,
  );
  for (const { durationMs } of commits) assert.ok(durationMs > 0 && durationMs < tookMs);
});

it('publishes every problem with its kind, even if the request is not HTTP', async (t) => {
  const app = await startApp(t);
  const token = await app.token('alice');
  const problems = messagesOf(t, 'plant-store:error');
  await app.call('GET', '/plants');
  await app.call('GET', '/plants', { token });
  await app.call('GET', '/plants/1', { token });
  await exchange(app.port, 'nonsense\r\n\r\n');
  assert.deepEqual(problems, [
    { kind: 'invalid-token' },
    { kind: 'plant-not-found' },
    { kind: 'invalid-request' },
  ]);
});
