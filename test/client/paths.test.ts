/**
 * Programs in plain JavaScript can pass anything. No argument leads to another resource than the one that the method
 * is about.
 */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { PlantStore } from '../../src/client/client.ts';
import { startApp } from '../support/app.ts';
import { cutAfter, startGateway } from '../support/gateway.ts';

async function setUp(t: TestContext) {
  const app = await startApp(t);
  const gateway = await startGateway(t, app.address, { prefix: '/green/house' });
  const token = await app.token('alice', { scopes });
  return { gateway, store: new PlantStore({ url: gateway.address, token }) };
}

const notIds: unknown[] = [
  '../token',
  '../tokens',
  '1/../../token',
  '..',
  '.',
  '',
  '1',
  '1?fields=id',
  '%2e%2e',
  0,
  -1,
  1.5,
  NaN,
  Infinity,
  2 ** 53,
  undefined,
  null,
  true,
  [1],
  1n,
];
const notNames: unknown[] = ['.', '..', '', '\ud800', undefined, null, 1, ['bob']];

it('an id that no plant can have is refused before anything is sent', async (t) => {
  const { gateway, store } = await setUp(t);
  for (const id of notIds as number[]) {
    for (const call of [
      () => store.get(id),
      () => store.getWithETag(id),
      () => store.update(id, { name: 'Ficus' }),
      () => store.delete(id),
      () => store.restore(id),
      () => store.history(id),
    ]) {
      await assert.rejects(call, { name: 'RangeError', message: /integer from 1 to/ }, String(id));
    }
  }
  assert.deepEqual(gateway.requests, []);
  assert.equal((await store.token()).user, 'alice');
});

it('a name that no URL can contain is refused before anything is sent', async (t) => {
  const { gateway, store } = await setUp(t);
  for (const name of notNames as string[]) {
    for (const call of [
      () => store.revokeToken(name),
      () => store.share(name, 'read'),
      () => store.unshare(name),
    ]) {
      await assert.rejects(call, { name: 'RangeError', message: /No URL/ });
    }
  }
  assert.deepEqual(gateway.requests, []);
});

it('a key and an entity tag that no header can contain are refused before anything is sent', async (t) => {
  const { gateway, store } = await setUp(t);
  for (const text of ['', '🌵', 'é', 'a\r\nx: y', null, 1] as string[]) {
    for (const call of [
      () => store.create({ name: 'Ficus' }, { idempotencyKey: text }),
      () => store.update(1, { name: 'Fern' }, { ifMatch: text }),
      () => store.delete(1, { ifMatch: text }),
    ]) {
      await assert.rejects(call, { name: 'RangeError', message: /printable ASCII/ });
    }
  }
  assert.deepEqual(gateway.requests, []);
});

it('every other name stays one segment of the path', async (t) => {
  const { gateway, store } = await setUp(t);
  const names = [
    '../token',
    '..\\token',
    '%2e%2e',
    '...',
    '/',
    '?',
    '#',
    'a:b',
    '\t',
    ' ',
    '@',
    '🌵',
  ];
  for (const name of names) {
    await assert.rejects(store.revokeToken(name), { name: 'PlantStoreError' });
    await assert.rejects(store.unshare(name), { name: 'PlantStoreError' });
  }
  const expected = names.flatMap((name) =>
    ['tokens', 'shares'].map((of) => `DELETE /green/house/${of}/${encodeURIComponent(name)}`),
  );
  assert.deepEqual(
    gateway.requests.map(({ line }) => line),
    expected,
  );
});

it('the plant of a lost response is looked up by an id only', async (t) => {
  const { gateway, store } = await setUp(t);
  gateway.plan.push(cutAfter);
  const plant = { name: 'Ficus', id: '../tokens' as unknown as number };
  await assert.rejects(store.create(plant), { kind: 'invalid-request' });
  assert.ok(gateway.requests.every(({ line }) => line.startsWith('POST /green/house/plants')));
});
