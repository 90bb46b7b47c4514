/**
 * Creates with an Idempotency-Key. test/cli/repeated-creates.ts sends them through processes that die.
 */
import assert from 'node:assert/strict';
import openapi from '../../openapi.json' with { type: 'json' };
import { startApp, type TestApp } from '../support/app.ts';
import { it } from '../support/storages.ts';

type Json = Record<string, unknown>;

const dayMs = 86_400_000;

function createWith(app: TestApp, token: string) {
  return (key: string | undefined, json: Json, target = '/plants') =>
    app.call('POST', target, {
      token,
      json,
      headers: key === undefined ? {} : { 'idempotency-key': key },
    });
}

it('a repeated create gets the first response, even if the plant has changed since', async (t) => {
  const app = await startApp(t);
  const token = await app.token('alice');
  const create = createWith(app, token);
  const first = await create('"k"', { name: 'Fern' });
  assert.equal(first.headers.get('idempotent-replayed'), null);
  await app.call('PATCH', '/plants/1', { token, json: { name: 'Moss' } });
  await app.call('DELETE', '/plants/1', { token });
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
  assert.equal((await app.call('GET', '/plants', { token })).text, '[]');
});

it('concurrent creates with one key create one plant', async (t) => {
  const app = await startApp(t);
  const token = await app.token('alice');
  const create = createWith(app, token);
  const answers = await Promise.all(
    Array.from({ length: 32 }, () => create('"k"', { name: 'Fern' })),
  );
  assert.deepEqual(
    new Set(answers.map(({ status, headers }) => `${status} ${headers.get('location')}`)),
    new Set(['201 /plants/1']),
  );
  const replays = answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true');
  assert.equal(replays.length, 31);
  assert.equal(((await app.call('GET', '/plants', { token })).json as Json[]).length, 1);
});

it('a key is for one plant of one user', async (t) => {
  const app = await startApp(t);
  const [alice, bob] = [await app.token('alice'), await app.token('bob')];
  const create = createWith(app, alice);
  assert.equal((await create('"k"', { name: 'Fern', id: 5 })).status, 201);
  for (const other of [{ name: 'Moss', id: 5 }, { name: 'Fern', id: 6 }, { name: 'Fern' }]) {
    const { status, json, headers } = await create('"k"', other);
    assert.equal(status, 422);
    assert.equal(headers.get('idempotent-replayed'), null);
    assert.equal((json as Json)['type'], '/problems/idempotency-key-reused');
  }
  const { headers } = await createWith(app, bob)('"k"', { name: 'Fern' });
  assert.equal(headers.get('location'), '/plants/6');
});

it('a refused create stores no key', async (t) => {
  const app = await startApp(t);
  const create = createWith(app, await app.token('alice'));
  await create(undefined, { name: 'Fern', id: 5 });
  assert.equal((await create('"k"', { name: 'Moss', id: 5 })).status, 409);
  assert.equal((await create('"k"', { name: '' })).status, 400);
  const { status, headers } = await create('"k"', { name: 'Moss' });
  assert.deepEqual([status, headers.get('idempotent-replayed')], [201, null]);
});

it('refuses a malformed key', async (t) => {
  const app = await startApp(t);
  const create = createWith(app, await app.token('alice'));
  const long = 'k'.repeat(256);
  const published = new RegExp(openapi.components.parameters['Idempotency-Key'].schema.pattern);
  for (const key of ['', '""', '"', 'a b', 'a,b', '"a\\b"', '"a"; x', 'é', long, `"${long}"`]) {
    const { status, json } = await create(key, { name: 'Fern' });
    assert.equal(status, 400, key);
    assert.match(String((json as Json)['detail']), /^Send one "Idempotency-Key" of 1 to 255/);
    assert.partialDeepStrictEqual(json, { errors: [{ parameter: 'Idempotency-Key' }] });
    assert.doesNotMatch(key, published);
  }
  for (const key of [
    `"${long.slice(1)}"`,
    `"${'\\"'.repeat(255)}"`,
    '"a\\"b\\\\ c"',
    '8e03978e-40d5',
  ]) {
    assert.equal((await create(key, { name: 'Fern' })).status, 201, key);
    assert.match(key, published);
  }
});

it('a key can be used again after 24 hours', async (t) => {
  const app = await startApp(t);
  const create = createWith(app, await app.token('alice'));
  await create('"k"', { name: 'Fern' });
  const table = tableOf(app);
  await app.database.run(`UPDATE ${table} SET at = at - ${dayMs - 60_000}`);
  assert.equal((await create('"k"', { name: 'Moss' })).status, 422);
  await app.database.run(`UPDATE ${table} SET at = at - 60000`);
  const { headers } = await create('"k"', { name: 'Moss' });
  assert.equal(headers.get('location'), '/plants/2');
});

function tableOf({ database }: TestApp): string {
  return database.url.startsWith('sqlite:') ? 'idempotency_keys' : 'plant_store.idempotency_keys';
}
