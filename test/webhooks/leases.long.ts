/**
 * Services over one database, of which some are killed again and again, and others paused: whatever happens, no two of them
 * send to an endpoint at once, and each endpoint gets every change.
 */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { scopes } from '../../src/access/access.ts';
import { leaseMs } from '../../src/webhooks/webhook.ts';
import { addToken, call } from '../support/app.ts';
import { serve, type Service } from '../support/command.ts';
import { listen } from '../support/listen.ts';
import { seededRandom } from '../support/random.ts';
import type { Message } from '../support/receiver.ts';
import { firstSeed } from '../support/rounds.ts';
import { storageNames, testDatabase, type StorageName } from '../support/storages.ts';
import { until } from '../support/until.ts';

const users = 20;
const webhooksOfUser = 10;
const wantedLeases = 10_000;
/** The first ones are killed, and get the requests. The others are paused: for less than a lease, or until it is over. */
const killed = 2;
const pausesMs = [leaseMs / 2, leaseMs - 5_000, leaseMs + 2_000];
/** Early, so that their leases end soon after the longest pause. */
const kills = 8;

// At the same time, because most of the time is a wait for the end of leases.
it('never sends at once from two processes, over 10,000 leases with kills and pauses', async (t) => {
  t.diagnostic(`PLANT_STORE_TEST_SEED=${firstSeed}`);
  const total = { leases: 0 };
  await Promise.all(storageNames.map((name) => sendWhileDisturbed(t, name, total)));
  t.diagnostic(`${total.leases} leases`);
});

async function sendWhileDisturbed(
  t: TestContext,
  name: StorageName,
  total: { leases: number },
): Promise<void> {
  const random = seededRandom(firstSeed);
  const database = await testDatabase(t, name);
  const tokens: string[] = [];
  {
    await using storage = await database.open();
    for (let at = 0; at < users; at++) {
      tokens.push(await addToken(storage, `user ${at}`, { scopes, role: 'manager' }));
    }
  }

  const inProgress = new Map<string, number>();
  const plantsOf = new Map<string, number[]>();
  let isEnd = false;
  const faults: string[] = [];
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const endpoint = request.url ?? '';
    const message: Message = JSON.parse(await text(request));
    total.leases++;
    const now = (inProgress.get(endpoint) ?? 0) + 1;
    inProgress.set(endpoint, now);
    if (now > 1) faults.push(`${endpoint} gets ${now} at once`);
    const plants = plantsOf.get(endpoint) ?? [];
    const ids = (message.data.changes ?? []).map(({ id }) => id);
    // At least once: what comes again begins where a message before it began.
    if ((ids[0] ?? 0) > (plants.at(-1) ?? 0) + 1) faults.push(`${endpoint} misses plants`);
    plantsOf.set(endpoint, [...plants.filter((id) => id < (ids[0] ?? 0)), ...ids]);
    await pause(random() * 30);
    inProgress.set(endpoint, (inProgress.get(endpoint) ?? 0) - 1);
    response.writeHead(!isEnd && random() < 0.02 ? 500 : 204).end();
  };
  const server = createServer((request, response) => void receive(request, response));
  const port = await listen(t, server);

  const start = () =>
    serve(t, [
      '--database',
      database.url,
      '--webhook-networks',
      '127.0.0.1',
      '--log-level',
      'error',
    ]);
  const running = await Promise.all(Array.from({ length: killed + pausesMs.length }, start));
  /** Sends a request until a service responds. */
  const send = async (method: string, path: string, token: string, json?: object) => {
    for (let at = 0; ; at++) {
      const { address } = running[at % killed] ?? assert.fail();
      const signal = AbortSignal.timeout(10_000);
      const sent = await call(address + path, method, { token, json, signal }).catch(
        () => undefined,
      );
      if (sent !== undefined && sent.status < 500) return sent;
      await pause(50);
    }
  };
  for (const [at, token] of tokens.entries()) {
    for (let number = 0; number < webhooksOfUser; number++) {
      const url = `http://127.0.0.1:${port}/${at}-${number}`;
      assert.equal((await send('POST', '/webhooks', token, { url })).status, 201);
    }
  }

  const [token = ''] = tokens;
  let plants = 0;
  const addPlant = async () => {
    plants++;
    const { status } = await send('POST', '/plants', token, { name: 'Fern', id: plants });
    assert.ok(status === 201 || status === 409, `${status}`);
  };
  await addPlant();
  const killAgain = async () => {
    for (let number = 0; number < kills; number++) {
      await pause(random() * 1_000);
      const at = Math.floor(random() * killed);
      await running[at]?.stop('SIGKILL');
      running[at] = await start();
    }
  };
  const pauseOne = async ({ child }: Service, ms: number) => {
    await pause(random() * 2_000);
    child.kill('SIGSTOP');
    await pause(ms);
    child.kill('SIGCONT');
  };
  const pausing = pausesMs.map((ms, at) => pauseOne(running[killed + at] ?? assert.fail(), ms));
  const disturbances = new Set([killAgain(), ...pausing]);
  for (const one of disturbances) void one.then(() => disturbances.delete(one));
  const isDone = () => disturbances.size === 0 && total.leases >= wantedLeases;
  while (!isDone() && faults.length === 0) {
    await addPlant();
    await pause(200);
  }
  isEnd = true;
  await Promise.all(disturbances);
  const hasAll = (received: readonly number[]) => received.at(-1) === plants;
  const haveAll = () =>
    plantsOf.size === users * webhooksOfUser && [...plantsOf.values()].every(hasAll);
  // A lease can end, or a pause after several failures.
  await until('everything arrives', () => haveAll() || faults.length > 0, 120_000);
  assert.deepEqual(faults, []);
  for (const received of plantsOf.values()) {
    assert.deepEqual(
      received,
      Array.from({ length: plants }, (_, at) => at + 1),
    );
  }
  t.diagnostic(`${name}: ${plants} plants to each of ${plantsOf.size} endpoints`);
}
