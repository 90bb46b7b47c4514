/**
 * The import on a real service: every good row is added once, whatever happens.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PlantStore } from '../../src/client/client.ts';
import { interrupted, rowsOf, run, start, storeOf, toRow } from './import.ts';

describe('an import', { concurrency: 2 }, () => {
  it('refuses rows with the reasons of the service', async (t) => {
    const { store, names } = await start(t);
    const plants = [
      { name: 'good' },
      { name: '' },
      { name: 'x', tga: 1 },
      { name: 5 },
      { name: ' ' },
    ];
    const faulty = { line: 9, fault: 'not a row' };
    const outcomes = await run(store, [...plants.map(toRow), faulty]);
    assert.deepEqual(outcomes[0], { row: 1, line: 2, status: 'added', id: 1 });
    assert.deepEqual(outcomes.at(-1), { row: 6, line: 9, status: 'refused', reason: 'not a row' });
    assert.match(outcomes[1]?.reason ?? '', /^"name" is empty\. Use a string of /);
    assert.match(outcomes[2]?.reason ?? '', /^Unknown field "tga"\. Use only /);
    assert.deepEqual(await names(), ['good']);
  });

  it('keeps the ids of rows that have one, and assigns larger ones to the others', async (t) => {
    const { store, names } = await start(t);
    await store.create({ name: 'taken', id: 7 });
    const plants = [
      { name: 'none' },
      { name: 'free', id: 8 },
      { name: 'other', id: 7 },
      { name: 'taken', id: 7 },
    ];
    for (const status of ['added', 'already added']) {
      const outcomes = await run(store, plants.map(toRow));
      assert.deepEqual(
        outcomes.map((outcome) => [outcome.status, outcome.id]),
        [
          [status, 9],
          [status, 8],
          ['refused', undefined],
          ['refused', undefined],
        ],
      );
      assert.match(outcomes[2]?.reason ?? '', /already has a plant with the id 7/);
    }
    assert.deepEqual(await names(), ['free', 'none', 'taken']);
  });

  it('ends with the problem if the token is refused or cannot write', async (t) => {
    const { app } = await start(t);
    const reader = await storeOf(app, ['plants:read']);
    await assert.rejects(run(reader, rowsOf(50)), { kind: 'insufficient-scope' });
    const stranger = new PlantStore({ url: app.address, token: 'plant_0' });
    await assert.rejects(run(stranger, rowsOf(50)), { kind: 'invalid-token' });
  });

  it('needs no scope to read', async (t) => {
    const { app, names } = await start(t);
    await run(await storeOf(app, ['plants:write']), rowsOf(2));
    assert.deepEqual(await names(), ['Plant 0', 'Plant 1']);
  });

  it('adds each row once if it is stopped and its connections are cut', async (t) => {
    await interrupted(t, 1);
  });
});
