import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PlantStore, PlantStoreError } from '../../src/client/client.ts';
import { startApp } from '../support/app.ts';

test('a plant can be created, listed, read and deleted', async (t) => {
  const { address, token } = await startApp(t);
  const store = new PlantStore({ url: address, token: await token('alice') });
  const { id, plant } = await store.create({ name: 'Monstera', tag: 'indoor' });
  assert.deepEqual({ id, plant }, { id: 1, plant: { name: 'Monstera', tag: 'indoor' } });
  await store.create({ name: 'Ficus', id: 40 });
  const listed = await Array.fromAsync(store.list({ fields: ['id', 'name'], pageSize: 1 }));
  assert.deepEqual(listed, [
    { id: 1, name: 'Monstera' },
    { id: 40, name: 'Ficus' },
  ]);
  assert.deepEqual(await store.get(40, { fields: ['tag'] }), { tag: '' });
  await store.delete(40);
  await assert.rejects(store.get(40), (error) => {
    assert.ok(error instanceof PlantStoreError);
    assert.equal(error.kind, 'plant-not-found');
    assert.equal(error.status, 404);
    return true;
  });
});
