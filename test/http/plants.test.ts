/**
 * What creates, reads and deletes plants, with and without an Idempotency-Key. test/model.test.ts has the rules of plants,
 * and test/plants/decide.test.ts those of keys. test/cli/repeated-creates.test.ts sends keys through processes
 * that die.
 */
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import openapi from '../../openapi.json' with { type: 'json' };
import { inNewStore, startApp, type Send } from '../support/app.ts';
import { fileScope, it as itOnEach, itOnce as it, storageOf } from '../support/storages.ts';

const dayMs = 86_400_000;
const app = await startApp(fileScope());

it('creates a plant with a Location, returns it, and deletes it', async () => {
  const alice = await inNewStore(app).user('alice');
  const json = { name: 'Monstera', id: 7, tag: 'indoor' };
  const created = await alice('POST', '/plants', { json });
  assert.equal(created.status, 201);
  assert.equal(created.text, '{"name":"Monstera","tag":"indoor"}');
  assert.equal(created.headers.get('location'), '/plants/7');
  const found = await alice('GET', '/plants/7');
  assert.deepEqual([found.status, found.text], [200, created.text]);
  const withBody = await alice('DELETE', '/plants/7', { json: {} });
  assert.equal(withBody.status, 400);
  assert.partialDeepStrictEqual(withBody.json, { errors: [{ pointer: '' }] });
  const deleted = await alice('DELETE', '/plants/7');
  assert.deepEqual([deleted.status, deleted.text], [204, '']);
  assert.equal(deleted.headers.get('content-type'), null);
  assert.equal((await alice('GET', '/plants/7')).status, 404);
  assert.equal((await alice('DELETE', '/plants/7')).status, 404);
  // Many clients send a type without a body.
  for (const type of ['application/json', 'text/xml', 'nonsense']) {
    await alice('POST', '/plants', { json });
    const headers = { 'content-type': type };
    assert.equal((await alice('GET', '/plants', { headers })).status, 200);
    assert.equal((await alice('DELETE', '/plants/7', { headers })).status, 204);
  }
});

it("returns the same bytes for another user's plant and a missing one", async () => {
  const { user } = inNewStore(app);
  const [alice, bob] = [await user('alice'), await user('bob')];
  await alice('POST', '/plants', { json: { name: 'hers' } });
  for (const [method, rest = '', json] of [
    ['GET'],
    ['HEAD'],
    ['DELETE'],
    ['PATCH', '', { name: 'x' }],
    ['POST', '/restore'],
    ['GET', '/history'],
  ] as const) {
    const [hers, none] = [
      await bob(method, `/plants/1${rest}`, { json }),
      await bob(method, `/plants/2${rest}`, { json }),
    ];
    assert.deepEqual([hers.status, hers.text], [404, none.text]);
    const steady = (headers: Headers) =>
      [...headers].filter(([name]) => !['date', 'x-request-id'].includes(name));
    assert.deepEqual(steady(hers.headers), steady(none.headers));
  }
  assert.equal((await alice('GET', '/plants/1')).status, 200);
});

describe('a create with an Idempotency-Key', () => {
  const createWith =
    (send: Send) =>
    (key: string | undefined, json: object, target = '/plants') =>
      send('POST', target, { json, headers: key === undefined ? {} : { 'idempotency-key': key } });

  it('gets the first response again, even if the plant has changed since', async () => {
    const alice = await inNewStore(app).user('alice');
    const create = createWith(alice);
    const first = await create('"k"', { name: 'Fern' });
    assert.equal(first.headers.get('idempotent-replayed'), null);
    await alice('PATCH', '/plants/1', { json: { name: 'Moss' } });
    await alice('DELETE', '/plants/1');
    for (const key of ['"k"', 'k', ' "k" ']) {
      const again = await create(key, { name: 'Fern', tag: '' });
      assert.deepEqual(
        [again.status, again.text, again.headers.get('location'), again.headers.get('etag')],
        [201, first.text, '/plants/1', first.headers.get('etag')],
      );
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
    }
    const asked = await create('"k"', { name: 'Fern' }, '/plants?fields=id,name');
    assert.deepEqual(asked.json, { id: 1, name: 'Fern' });
    assert.equal((await alice('GET', '/plants')).text, '[]');
  });

  it('is for one plant of one user, and a refused one stores no key', async () => {
    const { user } = inNewStore(app);
    const create = createWith(await user('alice'));
    assert.equal((await create('"k"', { name: 'Fern', id: 5 })).status, 201);
    for (const other of [{ name: 'Moss', id: 5 }, { name: 'Fern', id: 6 }, { name: 'Fern' }]) {
      const { status, json, headers } = await create('"k"', other);
      assert.deepEqual([status, headers.get('idempotent-replayed')], [422, null]);
      assert.partialDeepStrictEqual(json, { type: '/problems/idempotency-key-reused' });
    }
    const { headers } = await createWith(await user('bob'))('"k"', { name: 'Fern' });
    assert.equal(headers.get('location'), '/plants/6');
    assert.equal((await create('"l"', { name: 'Moss', id: 5 })).status, 409);
    assert.equal((await create('"l"', { name: '' })).status, 400);
    const created = await create('"l"', { name: 'Moss' });
    assert.deepEqual([created.status, created.headers.get('idempotent-replayed')], [201, null]);
  });

  it('needs a well-formed key', async () => {
    const create = createWith(await inNewStore(app).user('alice'));
    const long = 'k'.repeat(256);
    const published = new RegExp(openapi.components.parameters['Idempotency-Key'].schema.pattern);
    for (const key of ['', '""', '"', 'a b', 'a,b', '"a\\b"', '"a"; x', 'é', long, `"${long}"`]) {
      const { status, json } = await create(key, { name: 'Fern' });
      assert.equal(status, 400, key);
      const { detail } = json as { detail: string };
      assert.match(detail, /^Send one "Idempotency-Key" of 1 to 255/);
      assert.partialDeepStrictEqual(json, { errors: [{ parameter: 'Idempotency-Key' }] });
      assert.doesNotMatch(key, published);
    }
    const escaped = ['\\"'.repeat(255), 'a\\"b\\\\ c'].map((text) => `"${text}"`);
    for (const key of [`"${long.slice(1)}"`, ...escaped, '8e03978e-40d5']) {
      assert.equal((await create(key, { name: 'Fern' })).status, 201, key);
      assert.match(key, published);
    }
  });

  itOnEach('creates one plant if many are sent at once, and another after 24 hours', async (t) => {
    const { user, database } = await startApp(t);
    const create = createWith(await user('alice'));
    const asked = Array.from({ length: 32 }, () => create('"k"', { name: 'Fern' }));
    const answers = await Promise.all(asked);
    for (const { status, headers } of answers)
      assert.deepEqual([status, headers.get('location')], [201, '/plants/1']);
    const replayed = answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true');
    assert.equal(replayed.length, 31);
    const schema = storageOf(t) === 'SQLite' ? '' : 'plant_store.';
    const age = (ms: number) =>
      database.run(`UPDATE ${schema}idempotency_keys SET at = at - ${ms}`);
    await age(dayMs - 60_000);
    assert.equal((await create('"k"', { name: 'Moss' })).status, 422);
    await age(60_000);
    const { headers } = await create('"k"', { name: 'Moss' });
    assert.equal(headers.get('location'), '/plants/2');
  });
});
