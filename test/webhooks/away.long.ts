/**
 * A receiver that is away for two days, by the clock of the service.
 */
import assert from 'node:assert/strict';
import { scopes } from '../../src/access/access.ts';
import { startApp } from '../support/app.ts';
import { accept, refuse, startReceiver } from '../support/receiver.ts';
import { itOnce } from '../support/storages.ts';
import { until } from '../support/until.ts';

const awayMs = 2 * 24 * 3_600_000;

itOnce('a receiver that is away for two days gets every change in order', async (t) => {
  const app = await startApp(t, { webhookNetworks: ['127.0.0.0/8'] });
  const alice = await app.user('alice', { scopes });
  const receiver = await startReceiver(t);
  const { json } = await alice('POST', '/webhooks', { json: { url: receiver.url } });
  const { id } = json as { id: string }; // a webhook
  let plants = 0;
  const add = async () => {
    plants++;
    assert.equal((await alice('POST', '/plants', { json: { name: 'Fern' } })).status, 201);
  };
  const nextAttemptMs = async () => {
    const listed = (await alice('GET', '/webhooks')).json as {
      id: string;
      nextAttemptAt?: string;
    }[];
    return Date.parse(listed.find((webhook) => webhook.id === id)?.nextAttemptAt ?? '');
  };

  receiver.respond = (_, response) => refuse(response);
  const startMs = Date.now();
  let nowMs = startMs;
  t.mock.timers.enable({ apis: ['Date'], now: nowMs });
  await add();
  let attempts = 0;
  for (; nowMs < startMs + awayMs; attempts++) {
    const isRefused = async () => (await nextAttemptMs()) > nowMs + 3_000;
    await receiver.get(attempts);
    await until('the attempt is over', isRefused);
    await add();
    nowMs = await nextAttemptMs();
    t.mock.timers.setTime(nowMs);
  }
  await receiver.get(attempts);
  receiver.respond = (_, response) => accept(response);
  await until('the attempt is over', async () => (await nextAttemptMs()) > nowMs + 3_000);
  t.mock.timers.setTime(await nextAttemptMs());
  await receiver.untilPlant(plants);

  const repeated = receiver.received.splice(0, attempts + 2);
  const [first] = repeated;
  assert.deepEqual(first?.plants, [1]);
  for (const { id: messageId, body } of repeated) {
    assert.deepEqual([messageId, body], [first?.id, first?.body]);
  }
  assert.ok(attempts > 45 && attempts < 80, `${attempts} attempts`);
  assert.deepEqual(
    receiver.received.flatMap((message) => message.plants),
    Array.from({ length: plants - 1 }, (_, at) => at + 2),
  );
});
