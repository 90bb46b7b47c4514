/**
 * What follows from a route: which bodies it accepts, and how its path responds to other methods.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { NewPlant } from '../../src/plants/plant.ts';
import { startApp } from '../support/app.ts';

function addRoutes(app: FastifyInstance): void {
  app.put('/beds/:bed', { schema: { body: NewPlant } }, async ({ body }) => body);
  app.delete('/beds/:bed', { schema: { body: NewPlant } }, async ({ body }) => body);
  app.get('/beds/:bed', async () => 'a bed');
  app.patch('/beds', async () => 'all beds');
}

it('accepts a body with every method if the route has a schema for it', async (t) => {
  const { call } = await startApp(t, { addRoutes });
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

it('allows the methods that a path has routes for', async (t) => {
  const { call } = await startApp(t, { addRoutes });
  const allowed = {
    '/beds': 'OPTIONS, PATCH',
    '/beds/1': 'DELETE, GET, HEAD, OPTIONS, PUT',
    '/b%65ds/%31?x': 'DELETE, GET, HEAD, OPTIONS, PUT',
  };
  for (const [path, allow] of Object.entries(allowed)) {
    const options = await call('OPTIONS', path);
    assert.deepEqual([options.status, options.headers.get('allow')], [204, allow]);
    const other = await call('POST', path, { body: 'of any kind' });
    assert.deepEqual([other.status, other.headers.get('allow')], [405, allow]);
  }
  for (const method of ['GET', 'PUT', 'OPTIONS', 'POST']) {
    assert.equal((await call(method, '/beds/')).status, 404, method);
  }
});
