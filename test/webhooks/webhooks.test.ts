/**
 * Webhooks, as a user and a receiver see them.
 */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { pino } from 'pino';
import { scopes } from '../../src/access/access.ts';
import { openPost } from '../../src/webhooks/networks.ts';
import { createSender } from '../../src/webhooks/sender.ts';
import { startApp, type Send, type TestApp } from '../support/app.ts';
import { accept, refuse, startReceiver, verify } from '../support/receiver.ts';
import { wholeLog } from '../support/replay.ts';
import { findUser } from '../support/scene.ts';
import { it as itOnEach, itOnce as it, testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';

const local = { webhookNetworks: ['127.0.0.0/8'] };

interface Shown {
  id: string;
  secret: string;
  state: string;
  lag: number;
  status?: number;
  error?: string;
  nextAttemptAt?: string;
  reason?: string;
}

async function createdBy(send: Send, url: string, after?: string): Promise<Shown> {
  const { status, json, text } = await send('POST', '/webhooks', { json: { url, after } });
  assert.equal(status, 201, text);
  return json as Shown;
}

const listedBy = async (send: Send) => (await send('GET', '/webhooks')).json as Shown[];

async function addPlants(send: Send, count: number, name = 'Fern'): Promise<void> {
  const add = () => send('POST', '/plants', { json: { name } });
  const added = await Promise.all(Array.from({ length: count }, add));
  for (const { status } of added) assert.equal(status, 201);
}

const withAll = (app: TestApp, user: string) => app.user(user, { scopes });

itOnEach('get every change once and in order, signed, one request at a time', async (t) => {
  const app = await startApp(t, local);
  const alice = await withAll(app, 'alice');
  const receiver = await startReceiver(t);
  receiver.respond = (_, response) => setImmediate(accept, response);
  const { secret } = await createdBy(alice, receiver.url);
  await addPlants(alice, 1);
  const first = await receiver.get(0);
  assert.deepEqual(first.data.changes, [
    {
      id: 1,
      event: 'created',
      at: first.data.changes?.[0] && JSON.parse(first.body).timestamp,
      user: 'alice',
      plant: { name: 'Fern', tag: '' },
    },
  ]);
  await addPlants(alice, 40, '🌵'.repeat(200));
  await addPlants(alice, 80);
  await receiver.untilPlant(121);
  for (const message of receiver.received) {
    verify(message, secret);
    assert.equal(message.type, 'plants.changed');
    assert.ok(message.plants.length <= 50 && Buffer.byteLength(message.body) <= 20_000);
  }
  const all = receiver.received.flatMap(({ plants }) => plants);
  assert.deepEqual(
    all,
    Array.from({ length: 121 }, (_, at) => at + 1),
  );
  assert.equal(receiver.maxInProgress, 1);
  await until('it is known', async () => (await listedBy(alice))[0]?.lag === 0);
});

itOnEach(
  'get the same message again until they accept it, then what has changed since',
  async (t) => {
    const app = await startApp(t, local);
    const alice = await withAll(app, 'alice');
    const receiver = await startReceiver(t);
    let isBroken = true;
    receiver.respond = ({ type }, response) =>
      isBroken && type !== 'webhook.test'
        ? response.writeHead(503, { 'retry-after': '3000' }).end('secret')
        : accept(response);
    const { id } = await createdBy(alice, receiver.url);
    await addPlants(alice, 1);
    const first = await receiver.get(0);
    await until('it is failing', async () => (await listedBy(alice))[0]?.state === 'failing');
    const [failing] = await listedBy(alice);
    const nextMs = Date.parse(failing?.nextAttemptAt ?? '') - Date.now();
    assert.ok(nextMs > 2_900_000 && nextMs <= 3_000_000, `${nextMs} ms, as the receiver asks for`);
    assert.equal(failing?.status, 503);
    assert.equal((await alice('PATCH', '/plants/1', { json: { name: 'Ficus' } })).status, 200);

    const test = () => alice('POST', `/webhooks/${id}/test`);
    assert.equal((await test()).text, '{"status":204}');
    const again = await receiver.get(2);
    assert.deepEqual([again.id, again.body], [first.id, first.body]);
    isBroken = false;
    await until('the change arrives', async () => {
      assert.equal((await test()).status, 200);
      return receiver.received.some(({ body }) => body.includes('Ficus'));
    });
    const sent = receiver.received.filter(({ type }) => type === 'plants.changed');
    assert.deepEqual(
      sent.map(({ data }) => data.changes?.[0]?.event),
      ['created', 'created', 'created', 'updated'],
    );
    assert.equal(sent[2]?.id, first.id);
    assert.notEqual(sent[3]?.id, first.id);
    await until('it is active', async () => (await listedBy(alice))[0]?.state === 'active');
  },
);

itOnEach('get only what their user can read at the time of each attempt', async (t) => {
  const app = await startApp(t, local);
  const [alice, bob] = [await withAll(app, 'alice'), await withAll(app, 'bob')];
  const receiver = await startReceiver(t);
  receiver.respond = ({ type }, response) =>
    type === 'plants.changed' ? refuse(response) : accept(response);
  await addPlants(alice, 1, 'hers alone');
  await alice('PUT', '/shares/bob', { json: { access: 'read' } });
  const { id } = await createdBy(bob, receiver.url);
  await addPlants(alice, 1, 'shared');
  assert.match((await receiver.get(0)).body, /shared/);
  assert.equal((await alice('DELETE', '/shares/bob')).status, 204);
  await until('it is free', async () => (await bob('POST', `/webhooks/${id}/test`)).status === 200);
  await until('the reset arrives', () => receiver.received.length > 2);
  const { type, data } = receiver.received.at(-1) ?? {};
  assert.deepEqual([type, data], ['plants.reset', { reason: 'access-changed' }]);
  receiver.respond = (_, response) => accept(response);
  await addPlants(alice, 1, 'hers again');
  await addPlants(bob, 1, 'his');
  await receiver.untilPlant(4);
  const types = receiver.received
    .slice(2)
    .map((message) => `${message.type} ${message.plants.join()}`);
  assert.deepEqual(types, ['plants.reset ', 'plants.changed 4']);
});

itOnEach('end with their user', async (t) => {
  const app = await startApp(t, local);
  const [alice, bob] = [await withAll(app, 'alice'), await withAll(app, 'bob')];
  const [hers, his] = [await startReceiver(t), await startReceiver(t)];
  await createdBy(alice, hers.url);
  await app.user('bob', { role: 'manager' });
  await createdBy(bob, his.url);
  const user = await findUser(app.storage, 'main', 'alice');
  while ((await app.storage.users.endAccess(user, Date.now(), 10)) > 0);
  assert.deepEqual(await app.storage.webhooks.list(user), []);
  assert.ok(await app.storage.users.remove(user, Date.now()));
  const again = await withAll(app, 'alice');
  assert.deepEqual(await listedBy(again), []);
  await addPlants(again, 1);
  await his.untilPlant(1);
  assert.deepEqual(hers.received, []);
});

itOnEach('get each message from one process', async (t) => {
  const app = await startApp(t, local);
  const alice = await withAll(app, 'alice');
  const receivers = [await startReceiver(t), await startReceiver(t)];
  for (const { url } of receivers) await createdBy(alice, url);
  const stop = new AbortController();
  const log = pino({ level: 'silent' });
  const others = Array.from({ length: 3 }, async () => {
    await using storage = await app.database.open();
    await createSender(storage, openPost(local.webhookNetworks), log).run(stop.signal);
  });
  for (let batch = 0; batch < 40; batch++) await addPlants(alice, 10);
  for (const receiver of receivers) {
    await receiver.untilPlant(400);
    const all = receiver.received.flatMap(({ plants }) => plants);
    assert.deepEqual(
      all,
      Array.from({ length: 400 }, (_, at) => at + 1),
    );
    assert.equal(receiver.maxInProgress, 1);
  }
  stop.abort();
  await Promise.all(others);
});

it('that are slow or do not respond delay no others', async (t) => {
  const app = await startApp(t, local);
  const [alice, bob] = [await withAll(app, 'alice'), await withAll(app, 'bob')];
  await app.user('bob', { role: 'manager' });
  const [silent, fast] = [await startReceiver(t), await startReceiver(t)];
  const held: ServerResponse[] = [];
  silent.respond = (_, response) => held.push(response);
  for (let user = 0; user < 30; user++) {
    const other = await withAll(app, `user ${user}`);
    await app.user(`user ${user}`, { role: 'manager' });
    for (let at = 0; at < 10; at++) await createdBy(other, silent.url);
  }
  await createdBy(bob, fast.url);
  await addPlants(alice, 1);
  await silent.get(299);
  const startedMs = performance.now();
  await addPlants(alice, 1);
  await fast.untilPlant(2);
  const tookMs = performance.now() - startedMs;
  t.diagnostic(`${Math.round(tookMs)} ms`);
  assert.ok(tookMs < 1_000, `${tookMs} ms`);
  held.forEach(accept); // so that the app closes at once
});

itOnEach('are searched in steps, and take turns', async (t) => {
  const app = await startApp(t);
  const alice = await withAll(app, 'alice');
  await addPlants(alice, 1);
  const { webhooks } = app.storage;
  const nowMs = Date.now();
  const insert = (from: number, to: number, dueAtMs: number, sent: number | string) =>
    app.database.run(`
      WITH RECURSIVE ids (id) AS (SELECT ${from} UNION ALL SELECT id + 1 FROM ids WHERE id < ${to})
      INSERT INTO webhooks (store, user_id, id, version, due_at, sent, state)
      SELECT users.store, users.id, CAST(ids.id AS TEXT), 1, ${dueAtMs}, ${sent}, '{}'
      FROM ids, users JOIN stores ON stores.store = users.store`);
  await insert(10_000, 11_499, 0, 'stores.position');
  await insert(11_500, 11_505, 0, 0);
  await insert(11_506, 13_999, 0, 'stores.position');
  await insert(14_000, 14_000, 0, 0);
  const changed = async (after: string, limit: number) =>
    (await webhooks.changed(after, limit)).map(([, , id]) => id);
  assert.deepEqual(await changed('', 3), ['11500', '11501', '11502', '11503']);
  assert.deepEqual(await changed('11502', 3), ['11503', '11504', '11505', '14000']);
  assert.deepEqual(await changed('11505', 3), ['14000']);
  assert.deepEqual(await changed('14000', 3), []);

  const hourMs = 3_600_000;
  await insert(20_000, 20_000, nowMs - 1, 0);
  await insert(20_001, 20_001, nowMs - 2, 0);
  await insert(20_002, 20_002, nowMs + hourMs, 0);
  await insert(20_003, 20_003, nowMs + 3 * hourMs, 0); // a clock was set back since
  const due = async (limit: number) => (await webhooks.due(nowMs, limit)).map(([, , id]) => id);
  assert.deepEqual(await due(10), ['20001', '20000', '20003']);
  assert.deepEqual(await due(1), ['20001']);
});

it('that cannot be read are logged once, and stop no others', async (t) => {
  const lines: string[] = [];
  const app = await startApp(t, { ...local, log: pino({}, { write: (line) => lines.push(line) }) });
  const [alice, bob] = [await withAll(app, 'alice'), await withAll(app, 'bob')];
  await app.user('bob', { role: 'manager' });
  const receiver = await startReceiver(t);
  const { id } = await createdBy(alice, receiver.url);
  await createdBy(bob, receiver.url);
  // With another version, so that what has read it before cannot store it as it was.
  await app.database.run(
    `UPDATE webhooks SET state = 'x', version = version + 1 WHERE id = '${id}'`,
  );
  const logged = () => lines.filter((line) => line.includes('sending to webhooks failed')).length;
  for (let plant = 1; plant <= 5; plant++) {
    await addPlants(alice, 1);
    await receiver.untilPlant(plant);
    await until('it is logged', () => logged() > 0);
  }
  assert.equal(logged(), 1);
});

it('that respond with 410 get no more, until a test succeeds', async (t) => {
  const lines: string[] = [];
  const app = await startApp(t, { ...local, log: pino({}, { write: (line) => lines.push(line) }) });
  const alice = await withAll(app, 'alice');
  const receiver = await startReceiver(t);
  receiver.respond = (_, response) => response.writeHead(410).end();
  const { id } = await createdBy(alice, receiver.url);
  await addPlants(alice, 1);
  await until('it is retired', async () => (await listedBy(alice))[0]?.state === 'retired');
  assert.match((await listedBy(alice))[0]?.reason ?? '', /410/);
  const [line = ''] = lines.filter((one) => one.includes('webhook retired'));
  assert.match(line, new RegExp(id));
  assert.doesNotMatch(line, /127\.0\.0\.1/, 'URLs can have secrets');
  receiver.respond = (_, response) => accept(response);
  assert.equal((await alice('POST', `/webhooks/${id}/test`)).text, '{"status":204}');
  await receiver.untilPlant(1);
  await until('it is active', async () => (await listedBy(alice))[0]?.state === 'active');
});

it('drop a message that is from before a restore', async (t) => {
  const database = await testDatabase(t);
  const ends: Parameters<typeof t.after>[0][] = [];
  const open = () => database.open();
  const before = await startApp({ after: (end) => void ends.push(end) }, { ...local, open });
  const receiver = await startReceiver(t);
  receiver.respond = (_, response) => refuse(response);
  const alice = await withAll(before, 'alice');
  const { id } = await createdBy(alice, receiver.url);
  await addPlants(alice, 1);
  await until('it is failing', async () => (await listedBy(alice))[0]?.state === 'failing');
  for (const end of ends.toReversed()) await end?.(t, () => {});
  await database.run('UPDATE retention SET epoch = epoch + 1'); // as a restore does
  const restored = await startApp(t, { ...local, open });
  receiver.respond = (_, response) => accept(response);
  const again = await withAll(restored, 'alice');
  assert.equal((await again('POST', `/webhooks/${id}/test`)).status, 200);
  await until('it is active', async () => (await listedBy(again))[0]?.state === 'active');
  await until('the reset arrives', () => receiver.received.length >= 3);
  const types = receiver.received.map(({ type }) => type);
  assert.deepEqual(types, ['plants.changed', 'webhook.test', 'plants.reset']);
});

it('begin at a cursor', async (t) => {
  const app = await startApp(t, local);
  const alice = await withAll(app, 'alice');
  const receiver = await startReceiver(t);
  const begin = await alice('GET', '/changes');
  const [, after] = /after=([^&>]+)/.exec(begin.headers.get('link') ?? '') ?? [];
  await addPlants(alice, 3);
  await createdBy(alice, receiver.url, after);
  assert.deepEqual((await receiver.get(0)).plants, [1, 2, 3]);
  const json = { url: receiver.url, after: 'x' };
  assert.equal((await alice('POST', '/webhooks', { json })).status, 400);
});

itOnEach('are for their user, whose token can read plants, and in the log', async (t) => {
  const app = await startApp(t, local);
  const [alice, bob] = [await withAll(app, 'alice'), await withAll(app, 'bob')];
  const url = 'https://receiver.example/plants';
  const { id, secret } = await createdBy(alice, url);
  assert.match(secret, /^whsec_[\w+/]{43}=$/);
  assert.equal('secret' in ((await listedBy(alice))[0] ?? {}), false);
  assert.deepEqual(await listedBy(bob), []);
  for (const [method, target] of [
    ['DELETE', `/webhooks/${id}`],
    ['POST', `/webhooks/${id}/test`],
  ] as const)
    assert.equal((await bob(method, target)).status, 404);

  const reader = await app.user('alice', { scopes: ['plants:read', 'plants:write'] });
  assert.equal((await reader('GET', '/webhooks')).status, 403);
  const blind = await app.user('alice', { scopes: ['webhooks:write'] });
  const { status, text } = await blind('POST', '/webhooks', { json: { url } });
  assert.equal(status, 403);
  assert.match(text, /plants:read/);

  for (const wrong of ['receiver.example', 'ftp://receiver.example', 'http://a:b@c/', `${url}#a`]) {
    assert.equal((await alice('POST', '/webhooks', { json: { url: wrong } })).status, 400, wrong);
  }
  const more = Array.from({ length: 12 }, () => alice('POST', '/webhooks', { json: { url } }));
  const statuses = (await Promise.all(more)).map((one) => one.status);
  assert.deepEqual(
    statuses.toSorted((a, b) => a - b),
    [...Array<number>(9).fill(201), 409, 409, 409],
  );
  const removed = await alice('DELETE', `/webhooks/${id}`);
  assert.equal(removed.status, 204);
  assert.equal((await listedBy(alice)).length, 9);

  const log = await wholeLog(app.storage, 'main');
  const [created, ...others] = log.filter(({ event }) => event.startsWith('webhook-'));
  const origin = { owner: 'alice', user: 'alice', name: id, tag: 'https://receiver.example' };
  assert.partialDeepStrictEqual(created, { event: 'webhook-created', ...origin });
  assert.equal(others.length, 10);
  const request = removed.headers.get('x-request-id');
  assert.partialDeepStrictEqual(others.at(-1), { event: 'webhook-removed', ...origin, request });
});
