/**
 * What another process has written is seen by the next request, whichever token it has.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startApp } from '../support/app.ts';
import { testDatabase } from '../support/storages.ts';

it('PostgreSQL: a token that a replica has not seen before gets no page of an earlier request', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  const open = () => database.open();
  const [here, elsewhere] = [await startApp(t, { open }), await startApp(t, { open })];
  const known = await here.token('alice');
  const list = async (token: string) =>
    (await here.call('GET', '/plants?limit=20', { token })).json;
  const plants: unknown[] = [];
  assert.deepEqual(await list(known), plants);
  for (const name of ['Fern', 'Moss', 'Ivy']) {
    const { status } = await elsewhere.call('POST', '/plants', { token: known, json: { name } });
    assert.equal(status, 201);
    plants.push({ name, tag: '' });
    assert.deepEqual(await list(await here.token('alice')), plants);
  }
});
