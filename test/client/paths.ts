/**
 * Programs in plain JavaScript can pass anything. No argument leads to another resource than the one that the method
 * is about.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { cutAfter } from '../support/gateway.ts';
import { connect } from './service.ts';

const below = { scopes, prefix: '/green/house' };

const texts = [
  '../token',
  '../tokens',
  '1/../../token',
  '..',
  '.',
  '',
  '1',
  '1?fields=id',
  '%2e%2e',
];
const noIntegers: unknown[] = [0, -1, 1.5, NaN, Infinity, 2 ** 53, undefined, null, true, [1], 1n];
const dots = ['.', '..', '', '../plants/1', 'a/../b', '..\\token', 'a/.', '\ud800'];

it('an id that no plant can have is refused before anything is sent', async (t) => {
  const { requests, store } = await connect(t, below);
  for (const id of [...texts, ...noIntegers] as number[]) {
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
  assert.deepEqual(requests, []);
  assert.equal((await store.token()).user, 'alice');
});

it('a name that no URL can contain is refused before anything is sent', async (t) => {
  const { requests, store } = await connect(t, below);
  for (const name of [...dots, undefined, null, 1, ['bob']] as string[]) {
    for (const call of [
      () => store.revokeToken(name),
      () => store.share(name, 'read'),
      () => store.unshare(name),
      () => store.setRole(name, 'member'),
      () => store.removeUser(name),
      () => store.createTokenFor(name),
    ]) {
      await assert.rejects(call, { name: 'RangeError', message: /No URL/ });
    }
  }
  assert.deepEqual(requests, []);
});

it('an option that no request can contain is refused before anything is sent', async (t) => {
  const { requests, store } = await connect(t, below);
  const refused = async (call: Promise<unknown>, message: RegExp) =>
    assert.rejects(call, { name: 'RangeError', message });
  for (const text of ['', '🌵', 'é', 'a\r\nx: y', 'x'.repeat(256), null, 1] as string[]) {
    await refused(store.create({ name: 'Ficus' }, { idempotencyKey: text }), /printable ASCII/);
  }
  const tags = ['', 'x', 'é', '"a b"', '"a"\r\nx: y', '"a", "b"', null, 1] as string[];
  for (const [tag, message] of [
    ...tags.map((text) => [text, /with its quotation marks/] as const),
    ['W/"x"', /weak.* proxy/] as const,
  ]) {
    await refused(store.update(1, { name: 'Fern' }, { ifMatch: tag }), message);
    await refused(store.delete(1, { ifMatch: tag }), message);
  }
  for (const pageSize of [0, -1, 1.5, 1_001, NaN, '1'] as number[]) {
    for (const list of [store.list({ pageSize }), store.listDeleted({ pageSize })]) {
      await refused(list.next(), /`pageSize` must be an integer from 1 to 1000/);
    }
  }
  assert.deepEqual(requests, []);
});

it('every other name stays one segment of the path', async (t) => {
  const { requests, store } = await connect(t, below);
  const names = ['%2e%2e', '...', 'a../..b', '/', '?', '#', 'a:b', '\t', ' ', '@', '🌵'];
  for (const name of names) {
    await assert.rejects(store.revokeToken(name), { name: 'PlantStoreError' });
    await assert.rejects(store.unshare(name), { name: 'PlantStoreError' });
  }
  const expected = names.flatMap((name) =>
    ['tokens', 'shares'].map((of) => `DELETE /green/house/${of}/${encodeURIComponent(name)}`),
  );
  assert.deepEqual(
    requests.map(({ line }) => line),
    expected,
  );
});

it('the plant of a lost response is looked up by an id only', async (t) => {
  const { plan, requests, store } = await connect(t, below);
  plan.push(cutAfter);
  const plant = { name: 'Ficus', id: '../tokens' as unknown as number };
  await assert.rejects(store.create(plant), { kind: 'invalid-request' });
  assert.ok(requests.every(({ line }) => line.startsWith('POST /green/house/plants')));
});
