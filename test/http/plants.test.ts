import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { startApp } from '../support/app.ts';
import { exchange, request } from '../support/raw.ts';
import { itOnce as it } from '../support/storages.ts';

describe('create', () => {
  it('returns 201 with name, tag and the Location of the plant', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    const created = await call('POST', '/plants', {
      token: alice,
      json: { name: 'Monstera', id: 7, tag: 'indoor' },
    });
    assert.equal(created.status, 201);
    assert.equal(created.text, '{"name":"Monstera","tag":"indoor"}');
    assert.equal(created.headers.get('location'), '/plants/7');
    const found = await call('GET', '/plants/7', { token: alice });
    assert.deepEqual([found.status, found.text], [200, created.text]);
  });

  it('uses an empty tag and the next id by default', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    await call('POST', '/plants', { token: alice, json: { name: 'a', id: 41 } });
    const { text, headers } = await call('POST', '/plants', { token: alice, json: { name: 'b' } });
    assert.equal(text, '{"name":"b","tag":""}');
    assert.equal(headers.get('location'), '/plants/42');
  });

  it('returns the requested fields in their order', async (t) => {
    const { call, token } = await startApp(t);
    const path = '/plants?fields=tag,id,name';
    const { text } = await call('POST', path, { token: await token('alice'), json: { name: 'a' } });
    assert.equal(text, '{"tag":"","id":1,"name":"a"}');
  });

  it('returns 409 without a change if any user of the store has the id', async (t) => {
    const { call, token } = await startApp(t);
    const [alice, bob] = [await token('alice'), await token('bob')];
    await call('POST', '/plants', { token: alice, json: { name: 'hers', id: 1 } });
    for (const owner of [alice, bob]) {
      const taken = await call('POST', '/plants', { token: owner, json: { name: 'new', id: 1 } });
      assert.equal(taken.status, 409);
      assert.partialDeepStrictEqual(taken.json, { type: '/problems/id-taken' });
    }
    assert.equal(
      (await call('GET', '/plants', { token: alice })).text,
      '[{"name":"hers","tag":""}]',
    );
    assert.equal((await call('GET', '/plants', { token: bob })).text, '[]');
  });

  it('assigns a random free id if a client has used the largest one', async (t) => {
    const { call, token } = await startApp(t);
    const options = { token: await token('alice') };
    const id = Number.MAX_SAFE_INTEGER;
    await call('POST', '/plants', { ...options, json: { name: 'last', id } });
    const created = await call('POST', '/plants?fields=id,name', {
      ...options,
      json: { name: 'next' },
    });
    assert.equal(created.status, 201);
    const plant = created.json as { id: number };
    assert.ok(Number.isSafeInteger(plant.id) && plant.id > 0 && plant.id < id, created.text);
    assert.equal(created.headers.get('location'), `/plants/${plant.id}`);
    const { json } = await call('GET', '/plants?fields=id,name', options);
    assert.deepEqual(json, [plant, { id, name: 'last' }]);
  });

  it('allows the same id in two stores', async (t) => {
    const { call, token } = await startApp(t);
    const here = await token('alice');
    const there = await token('alice', { store: 'elsewhere' });
    for (const one of [here, there]) {
      const json = { name: one === here ? 'here' : 'there', id: 1 };
      assert.equal((await call('POST', '/plants', { token: one, json })).status, 201);
    }
    assert.equal(
      (await call('GET', '/plants/1', { token: here })).text,
      '{"name":"here","tag":""}',
    );
    assert.equal((await call('DELETE', '/plants/1', { token: there })).status, 204);
    assert.equal((await call('GET', '/plants/1', { token: here })).status, 200);
  });
});

describe('get and delete', () => {
  it('delete returns 204 without a body, and no later response contains the plant', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    await call('POST', '/plants', { token: alice, json: { name: 'a', tag: 't' } });
    const deleted = await call('DELETE', '/plants/1', { token: alice });
    assert.deepEqual([deleted.status, deleted.text], [204, '']);
    assert.equal(deleted.headers.get('content-type'), null);
    assert.equal((await call('GET', '/plants/1', { token: alice })).status, 404);
    assert.equal((await call('DELETE', '/plants/1', { token: alice })).status, 404);
    assert.equal((await call('GET', '/plants', { token: alice })).text, '[]');
    assert.equal((await call('GET', '/plants?tag=t', { token: alice })).text, '[]');
  });

  it("returns the same bytes for another user's plant and a missing one", async (t) => {
    const { call, token } = await startApp(t);
    const [alice, bob] = [await token('alice'), await token('bob')];
    await call('POST', '/plants', { token: alice, json: { name: 'hers', id: 1 } });
    for (const method of ['GET', 'DELETE']) {
      const [hers, none] = [
        await call(method, '/plants/1', { token: bob }),
        await call(method, '/plants/2', { token: bob }),
      ];
      assert.deepEqual([hers.status, hers.text], [404, none.text]);
      const steady = (headers: Headers) =>
        [...headers].filter(([name]) => !['date', 'x-request-id'].includes(name));
      assert.deepEqual(steady(hers.headers), steady(none.headers));
    }
    assert.equal((await call('GET', '/plants/1', { token: alice })).status, 200);
  });

  it('allows managers to read and delete every plant of their own store only', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    const manager = await token('maria', { role: 'manager' });
    const elsewhere = await token('emil', { role: 'manager', store: 'elsewhere' });
    await call('POST', '/plants', { token: alice, json: { name: 'hers', id: 1 } });
    assert.equal((await call('GET', '/plants/1', { token: elsewhere })).status, 404);
    assert.equal((await call('DELETE', '/plants/1', { token: elsewhere })).status, 404);
    assert.equal((await call('GET', '/plants', { token: elsewhere })).text, '[]');
    assert.equal((await call('GET', '/plants/1', { token: manager })).status, 200);
    assert.equal((await call('DELETE', '/plants/1', { token: manager })).status, 204);
    assert.equal((await call('GET', '/plants/1', { token: alice })).status, 404);
  });

  it('accepts a content type without a body', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    for (const type of ['application/json', 'text/xml', 'nonsense']) {
      await call('POST', '/plants', { token: alice, json: { name: 'a', id: 1 } });
      const headers = { 'content-type': type };
      assert.equal((await call('GET', '/plants', { token: alice, headers })).status, 200);
      assert.equal((await call('DELETE', '/plants/1', { token: alice, headers })).status, 204);
    }
  });

  it('refuses an unexpected body without a change', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    await call('POST', '/plants', { token: alice, json: { name: 'a' } });
    assert.equal((await call('DELETE', '/plants/1', { token: alice, json: {} })).status, 400);
    assert.equal((await call('GET', '/plants/1', { token: alice })).status, 200);
  });
});

describe('HEAD and OPTIONS', () => {
  it('HEAD responds like GET without the body', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    await call('POST', '/plants', { token: alice, json: { name: 'a' } });
    await call('POST', '/plants', { token: alice, json: { name: 'b' } });
    const paths = [
      '/plants',
      '/plants?limit=1',
      '/plants/1',
      '/plants/9',
      '/livez',
      '/openapi.json',
    ];
    for (const path of paths) {
      const [get, head] = [
        await call('GET', path, { token: alice }),
        await call('HEAD', path, { token: alice }),
      ];
      assert.deepEqual([head.status, head.text], [get.status, ''], path);
      for (const name of ['content-type', 'content-length', 'link']) {
        assert.equal(head.headers.get(name), get.headers.get(name), `${path} ${name}`);
      }
    }
  });

  it('HEAD returns the length of GET, even for an error', async (t) => {
    const { port, token } = await startApp(t);
    const authorization = `Authorization: Bearer ${await token('alice')}`;
    const lengthOf = async (method: string) => {
      const headers = ['Host: x', authorization, 'Content-Length: 1'];
      const answer = await exchange(port, request(`${method} /plants`, headers, 'x'));
      return /^content-length: (\d+)\r$/im.exec(answer)?.[1];
    };
    assert.ok(await lengthOf('GET'));
    assert.equal(await lengthOf('HEAD'), await lengthOf('GET'));
  });

  it('HEAD of a streamed list has no length', async (t) => {
    const app = await startApp(t);
    const alice = await app.token('alice');
    await app.database.fill(
      Array.from({ length: 4_000 }, (_, at) => ({ id: at + 1, tag: '', name: 'n'.repeat(20) })),
    );
    const head = await app.call('HEAD', '/plants', { token: alice });
    assert.deepEqual([head.status, head.text], [200, '']);
    assert.equal(head.headers.get('content-length'), null);
  });

  it('OPTIONS and 405 return the methods of a path, without a token', async (t) => {
    const { call } = await startApp(t);
    const allowed = {
      '/plants': 'GET, HEAD, OPTIONS, POST',
      '/plants/1': 'DELETE, GET, HEAD, OPTIONS, PATCH',
      '/plants/1/restore': 'OPTIONS, POST',
      '/plants/1/history': 'GET, HEAD, OPTIONS',
      '/livez': 'GET, HEAD, OPTIONS',
    };
    for (const [path, allow] of Object.entries(allowed)) {
      const options = await call('OPTIONS', path);
      assert.deepEqual([options.status, options.headers.get('allow')], [204, allow]);
      for (const method of ['PUT', 'SEARCH', 'PROPFIND']) {
        const refused = await call(method, path, { body: '<x/>' });
        assert.deepEqual([refused.status, refused.headers.get('allow')], [405, allow]);
        assert.partialDeepStrictEqual(refused.json, {
          type: '/problems/method-not-allowed',
        });
      }
    }
    assert.equal((await call('POST', '/plants/1', { body: 'x' })).status, 405);
  });

  it('returns 404 for an unknown path with every method', async (t) => {
    const { call } = await startApp(t);
    for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE']) {
      for (const path of [
        '/plant',
        '/openapiXjson',
        '/plants/',
        '/plants/1/leaves',
        '/PLANTS',
        '//plants',
      ]) {
        const answer = await call(method, path, method === 'POST' ? { body: 'x' } : {});
        assert.equal(answer.status, 404, `${method} ${path}`);
      }
    }
  });
});

it('returns addresses below the base URL', async (t) => {
  const { call, token } = await startApp(t, { baseUrl: 'https://plants.example/api' });
  const alice = await token('alice');
  const first = await call('POST', '/plants', { token: alice, json: { name: 'a' } });
  await call('POST', '/plants', { token: alice, json: { name: 'b' } });
  assert.equal(first.headers.get('location'), 'https://plants.example/api/plants/1');
  const { headers } = await call('GET', '/plants?limit=1', { token: alice });
  const link = '<https://plants.example/api/plants?limit=1&after=1>; rel="next"';
  assert.equal(headers.get('link'), link);
  const { json } = await call('GET', '/openapi.json');
  assert.partialDeepStrictEqual(json, { servers: [{ url: 'https://plants.example/api' }] });
});

it('returns nothing but its health without a token', async (t) => {
  const { call } = await startApp(t);
  for (const path of ['/livez', '/readyz']) {
    const { status, text } = await call('GET', path);
    assert.equal(status, 200);
    assert.match(text, /^\{"status":"ok"/);
  }
});

it('gives every response its own request id', async (t) => {
  const { call, token } = await startApp(t);
  const alice = await token('alice');
  const answers = [
    await call('GET', '/plants', { token: alice }),
    await call('GET', '/plants'),
    await call('GET', '/nowhere'),
    await call('GET', '/plants/%zz'),
    await call('PUT', '/plants'),
    await call('POST', '/plants', { token: alice, body: '{', headers: { 'content-type': 'x/y' } }),
  ];
  const ids = answers.map(({ headers }) => headers.get('x-request-id'));
  assert.ok(ids.every((id) => id !== null && /^[0-9a-f-]{36}$/.test(id)));
  assert.equal(new Set(ids).size, ids.length);
});
