/**
 * The import on a real service: every good row is added once, whatever happens.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PlantStore, PlantStoreError } from '../../src/client/client.ts';
import { memoryJournal } from '../../src/client/import-journal.ts';
import { countsOf, interrupted, rowsOf, run, start, storeOf, toRow } from './import.ts';

describe('an import', { concurrency: 2 }, () => {
  it('gives the rows ids in the order of the file, from 1 in an empty store', async (t) => {
    const { store } = await start(t);
    const outcomes = await run(store, rowsOf(100));
    assert.deepEqual(
      outcomes.toSorted((one, other) => one.row - other.row),
      Array.from({ length: 100 }, (_, at) => ({
        row: at + 1,
        line: at + 2,
        status: 'added',
        id: at + 1,
      })),
    );
    assert.equal((await store.create({ name: 'next' })).id, 101);
  });

  it('refuses rows with the reasons of the service, also if the last ones are wrong', async (t) => {
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
    const byRow = outcomes.toSorted((one, other) => one.row - other.row);
    assert.deepEqual(byRow[0], { row: 1, line: 2, status: 'added', id: byRow[0]?.id });
    assert.deepEqual(byRow.at(-1), { row: 6, line: 9, status: 'refused', reason: 'not a row' });
    assert.match(byRow[1]?.reason ?? '', /^"name" is empty\. Use a string of /);
    assert.match(byRow[2]?.reason ?? '', /^Unknown field "tga"\. Use only /);
    assert.deepEqual(await names(), ['good']);
  });

  it('adds only the fixed rows of a fixed file, and counts equal rows', async (t) => {
    const { store, names } = await start(t);
    const journal = memoryJournal();
    const file = ['a', 'b', 'a', '', ''];
    await run(
      store,
      file.map((name) => toRow({ name })),
      { journal },
    );
    assert.deepEqual(await names(), ['a', 'a', 'b']);
    const fixed = ['a', 'b', 'a', 'a', 'c'];
    const outcomes = await run(
      store,
      fixed.map((name) => toRow({ name })),
      { journal },
    );
    assert.deepEqual(countsOf(outcomes), { added: 2, 'already added': 3, refused: 0 });
    assert.deepEqual(await names(), ['a', 'a', 'a', 'b', 'c']);
  });

  it('keeps the ids of rows that have one, and refuses them if another plant has the id', async (t) => {
    const { store, names } = await start(t);
    await store.create({ name: 'taken', id: 7 });
    const plants = [
      { name: 'free', id: 3 },
      { name: 'other', id: 7 },
      { name: 'taken', id: 7 },
      { name: 'none' },
    ];
    const outcomes = await run(store, plants.map(toRow));
    const byRow = outcomes.toSorted((one, other) => one.row - other.row);
    assert.deepEqual(
      byRow.map(({ status, id }) => [status, id]),
      [
        ['added', 3],
        ['refused', undefined],
        ['already added', 7],
        ['added', 8],
      ],
    );
    assert.match(byRow[1]?.reason ?? '', /already has a plant with the id 7/);
    assert.deepEqual(await names(), ['free', 'none', 'taken']);
  });

  it('finds free ids among plants of other users, and among deleted ones', async (t) => {
    const { app, store, names } = await start(t);
    const other = await storeOf(app, 'bob', 'member');
    for (let id = 1; id <= 60; id++) await other.create({ name: 'other', id });
    for (const id of [10, 20, 50]) await other.delete(id);
    for (const count of [10, 20, 5]) await run(store, rowsOf(count));
    assert.equal((await names()).length, 35);
    assert.equal((await store.create({ name: 'next' })).id, 95, 'no id is skipped');
  });

  it('adds rows without ids to a store that has the largest id', async (t) => {
    const { store, names } = await start(t);
    const plants = [{ name: 'last', id: Number.MAX_SAFE_INTEGER }, { name: 'a' }, { name: 'b' }];
    const journal = memoryJournal();
    await run(store, plants.map(toRow), { journal });
    const outcomes = await run(store, [...plants, { name: 'c' }].map(toRow), { journal });
    assert.deepEqual(countsOf(outcomes), { added: 1, 'already added': 3, refused: 0 });
    assert.deepEqual(await names(), ['a', 'b', 'c', 'last']);
  });

  it('ends with the problem if the token is refused or cannot write', async (t) => {
    const { app } = await start(t);
    const reader = await storeOf(app, 'alice', 'member', ['plants:read']);
    await assert.rejects(run(reader, rowsOf(50)), (error) => {
      assert.ok(error instanceof PlantStoreError);
      assert.equal(error.kind, 'insufficient-scope');
      return true;
    });
    const stranger = new PlantStore({ url: app.address, token: 'plant_0' });
    await assert.rejects(run(stranger, rowsOf(50)), { kind: 'invalid-token' });
  });

  it('adds every row of two imports of the same file at the same time', async (t) => {
    const { store, names } = await start(t);
    await Promise.all([run(store, rowsOf(200)), run(store, rowsOf(150)), run(store, rowsOf(200))]);
    const all = [...rowsOf(200), ...rowsOf(150), ...rowsOf(200)];
    assert.deepEqual(await names(), all.map(({ plant }) => plant.name).toSorted());
  });

  it('takes no equal plant of another client for a row whose request was lost', async (t) => {
    const { app, store: other, names } = await start(t);
    const token = await app.token('alice');
    let isFirst = true;
    let isLost = false;
    const store = new PlantStore({
      url: app.address,
      token,
      async fetch(url, init) {
        if (init.method === 'POST' && isFirst) {
          isFirst = false;
          for (const { plant } of rowsOf(5)) await other.create(plant);
        }
        if (!isLost && typeof init.body === 'string' && init.body.includes('"Plant 1"')) {
          isLost = true;
          throw new TypeError('lost');
        }
        return fetch(url, init);
      },
    });
    await run(store, rowsOf(20));
    const expected = [...rowsOf(20), ...rowsOf(5)].map(({ plant }) => plant.name);
    assert.deepEqual(await names(), expected.toSorted());
  });

  it('adds each row once if it is stopped and its connections are cut', async (t) => {
    await interrupted(t, 'member', 1);
  });
});
