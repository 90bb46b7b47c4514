import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { PlantStore } from '../../src/client/client.ts';
import { override, startApp } from '../support/app.ts';
import { rounds } from '../support/rounds.ts';
import { interrupted, rowsOf, run } from './import.ts';

it('a row without an id is added once if the service carries out its request late', async (t) => {
  const late = Promise.withResolvers<void>();
  let isFirst = true;
  const app = await startApp(t, {
    wrap: (storage) =>
      override(storage, {
        plants: {
          create: async (caller, plant) => {
            if (plant.id !== undefined || !isFirst) return storage.plants.create(caller, plant);
            isFirst = false;
            await pause(3_000);
            const created = await storage.plants.create(caller, plant);
            late.resolve();
            return created;
          },
        },
      }),
  });
  // Alice does not see the plant that has her first id, so one of her rows is sent without an id.
  const bob = new PlantStore({ url: app.address, token: await app.token('bob') });
  for (const id of [1, 2, 3]) await bob.create({ name: 'Hidden', id });
  const token = await app.token('alice');
  const store = new PlantStore({ url: app.address, token, timeoutMs: 1_000 });
  const outcomes = await run(store, rowsOf(3));
  assert.equal(outcomes.length, 3);
  await late.promise;
  const names = (await Array.fromAsync(store.list())).map(({ name }) => name);
  assert.deepEqual(names.toSorted(), ['Plant 0', 'Plant 1', 'Plant 2']);
});

for (const role of ['manager', 'member'] as const) {
  it(`an interrupted import of a ${role} adds each row once`, (t) =>
    rounds(t, (inner, seed) => interrupted(inner, role, seed)));

  it(`an interrupted import of a ${role} also does so in a store that has the largest id`, (t) =>
    interrupted(t, role, 1, { name: 'last', tag: 'last', id: Number.MAX_SAFE_INTEGER }));
}
