/**
 * What follows from a route: which methods its path has, which bodies it accepts, and what each response has.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { NewPlant } from '../../src/plants/plant.ts';
import { startApp } from '../support/app.ts';
import { exchange, request } from '../support/raw.ts';
import { fileScope } from '../support/storages.ts';

const { call, token, user, port } = await startApp(fileScope(), {
  addRoutes: (app) => {
    app.put('/beds/:bed', { schema: { body: NewPlant } }, async ({ body }) => body);
    app.delete('/beds/:bed', { schema: { body: NewPlant } }, async ({ body }) => body);
    app.get('/beds/:bed', async () => 'a bed');
    app.patch('/beds', async () => 'all beds');
  },
});

it('accepts a body with every method if the route has a schema for it', async () => {
  const json = { name: 'Monstera' };
  for (const method of ['PUT', 'DELETE']) {
    const taken = await call(method, '/beds/1', { json });
    assert.deepEqual([taken.status, taken.json], [200, json]);
    const faulty = await call(method, '/beds/1', { json: { name: 1 } });
    assert.deepEqual([faulty.status, faulty.text.match(/"pointer":"\/name"/g)?.length], [400, 1]);
    assert.equal((await call(method, '/beds/1')).status, 400);
    assert.equal((await call(method, '/beds/1', { body: '{"name":"a"}' })).status, 415);
  }
  assert.equal((await call('PATCH', '/beds')).text, 'all beds');
  const refused = await call('PATCH', '/beds', { json });
  assert.deepEqual([refused.status, /without a body/.test(refused.text)], [400, true]);
});

it('OPTIONS and 405 return the methods that a path has routes for, without a token', async () => {
  for (const [path, allow] of Object.entries({
    '/beds': 'OPTIONS, PATCH',
    '/beds/1': 'DELETE, GET, HEAD, OPTIONS, PUT',
    '/b%65ds/%31?x': 'DELETE, GET, HEAD, OPTIONS, PUT',
    '/plants': 'GET, HEAD, OPTIONS, POST',
    '/plants/1': 'DELETE, GET, HEAD, OPTIONS, PATCH',
    '/plants/1/restore': 'OPTIONS, POST',
    '/plants/1/history': 'GET, HEAD, OPTIONS',
    '/bin': 'GET, HEAD, OPTIONS',
    '/shares/bob': 'DELETE, OPTIONS, PUT',
    '/token': 'DELETE, GET, HEAD, OPTIONS',
    '/tokens': 'GET, HEAD, OPTIONS, POST',
    '/tokens/000000001-22894e9580395e64': 'DELETE, OPTIONS',
    '/livez': 'GET, HEAD, OPTIONS',
  })) {
    const options = await call('OPTIONS', path);
    assert.deepEqual([options.status, options.headers.get('allow')], [204, allow]);
    for (const method of ['PUT', 'POST', 'SEARCH', 'PROPFIND']) {
      if (allow.includes(method)) continue;
      const refused = await call(method, path, { body: 'of any kind' });
      assert.deepEqual([refused.status, refused.headers.get('allow')], [405, allow], path);
      assert.partialDeepStrictEqual(refused.json, { type: '/problems/method-not-allowed' });
    }
  }
});

it('returns 404 for an unknown path with every method', async () => {
  const plants = ['/plant', '/plants/', '/plants/1/leaves', '/PLANTS', '//plants', '/bin/1'];
  for (const path of [...plants, '/openapiXjson', '/shares/', '/beds/']) {
    for (const method of ['GET', 'POST', 'PUT', 'OPTIONS', 'DELETE']) {
      const answer = await call(method, path, method === 'POST' ? { body: 'x' } : {});
      assert.equal(answer.status, 404, `${method} ${path}`);
    }
  }
});

it('HEAD responds like GET without the body, even for an error', async () => {
  const alice = await user('alice');
  for (const name of ['a', 'b']) await alice('POST', '/plants', { json: { name } });
  const lists = ['/plants', '/plants?limit=1'];
  for (const path of [...lists, '/plants/1', '/plants/9', '/token', '/livez', '/openapi.json']) {
    const [get, head] = [await alice('GET', path), await alice('HEAD', path)];
    assert.deepEqual([head.status, head.text], [get.status, ''], path);
    for (const name of ['content-type', 'content-length', 'link'])
      assert.equal(head.headers.get(name), get.headers.get(name), `${path} ${name}`);
  }
  const headers = ['Host: x', `Authorization: Bearer ${await token('alice')}`, 'Content-Length: 1'];
  const lengthOf = async (method: string) => {
    const answer = await exchange(port, request(`${method} /plants`, headers, 'x'));
    return /^content-length: (\d+)\r$/im.exec(answer)?.[1];
  };
  assert.ok(await lengthOf('GET'));
  assert.equal(await lengthOf('HEAD'), await lengthOf('GET'));
});
