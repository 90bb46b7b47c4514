/**
 * Creates that are sent twice with the same Idempotency-Key, through two processes that are killed meanwhile.
 */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { call } from '../support/app.ts';
import { runOk, serve, type Service } from '../support/command.ts';
import { seededRandom } from '../support/random.ts';
import { firstSeed as seed, sizeOf } from '../support/rounds.ts';
import { it as itOnEach, itOnce, testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';

/** Requests in progress. */
const clients = 16;
const maxDelayMs = 40;
const plants = sizeOf({ usual: 60, long: 500 });
const plantsPerKill = 25;
/** The contracts have repeated creates on both storages. */
const it = sizeOf({ usual: itOnce, long: itOnEach });

it('creates that are sent twice, through processes that die, create each plant once', async (t) => {
  t.diagnostic(`PLANT_STORE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const { url } = await testDatabase(t);
  const env = { PLANT_STORE_DATABASE: url, PLANT_STORE_LOG_LEVEL: 'error' };
  const token = await runOk(['token', 'create', 'alice'], { env });
  const services: Service[] = await Promise.all([serve(t, [], { env }), serve(t, [], { env })]);
  const addresses = services.map(({ address }) => address);

  /** Repeats the request until it has a response. */
  const create = async (name: string): Promise<string> => {
    while (!stop.signal.aborted) {
      await pause(random() * maxDelayMs);
      const address = addresses[Math.floor(random() * addresses.length)] ?? '';
      const headers = { 'idempotency-key': `"${name}"` };
      const options = { token, json: { name }, headers };
      const answer = await call(`${address}/plants`, 'POST', options).catch(() => undefined);
      if (answer === undefined || answer.status === 503) continue;
      assert.equal(answer.status, 201, answer.text + services.map((one) => one.log()).join('\n'));
      return `${answer.headers.get('location')} ${answer.headers.get('etag')} ${answer.text}`;
    }
    throw new Error('another create failed');
  };
  const stop = new AbortController();
  let next = 0;
  const work = async () => {
    while (next < plants) {
      const name = `plant ${next++}`;
      const [first, second] = await Promise.all([create(name), create(name)]);
      assert.equal(first, second);
    }
  };
  const all = Promise.all(Array.from({ length: clients }, work));
  const kills = (async () => {
    for (let kill = 1; kill * plantsPerKill < plants && !stop.signal.aborted; kill++) {
      await until('the next kill is due', () => next > kill * plantsPerKill || stop.signal.aborted);
      const at = kill % 2;
      await services[at]?.stop('SIGKILL');
      services[at] = await serve(t, ['--port', new URL(addresses[at] ?? '').port], { env });
    }
  })();
  await Promise.all([all, kills]).finally(() => stop.abort());

  const { json } = await call(`${addresses[0]}/plants`, 'GET', { token });
  const names = (json as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(
    names.toSorted(),
    Array.from({ length: plants }, (_, at) => `plant ${at}`).toSorted(),
  );
});
