/**
 * The import on a real service. test/cli/import.test.ts interrupts it.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PlantStore } from '../../src/client/client.ts';
import type { ImportOutcome } from '../../src/client/send-rows.ts';
import type { ImportRow } from '../../src/client/read-table.ts';
import { importPlants, undoImport } from '../../src/client/send-rows.ts';
import { connect } from './service.ts';

describe('an import', () => {
  it('refuses rows with the reasons of the service', async (t) => {
    const { store } = await connect(t);
    const plants = [
      { name: 'good' },
      { name: '' },
      { name: 'x', tga: 1 },
      { name: 5 },
      { name: ' ' },
    ];
    const faulty = { line: 9, fault: 'not a row', content: {} };
    const outcomes = await run(store, [...plants.map(toRow), faulty]);
    const { etag } = await store.getWithETag(1);
    assert.deepEqual(outcomes[0], { row: 1, line: 2, status: 'added', id: 1, key: 'row 1', etag });
    assert.deepEqual(outcomes.at(-1), { row: 6, line: 9, status: 'refused', reason: 'not a row' });
    assert.match(outcomes[1]?.reason ?? '', /^The name is empty\.$/);
    assert.match(outcomes[2]?.reason ?? '', /^Unknown field "tga"\. Use only /);
    assert.deepEqual(await namesOf(store), ['good']);
  });

  it('keeps the ids of rows that have one, and assigns larger ones to the others', async (t) => {
    const { store } = await connect(t);
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
    assert.deepEqual(await namesOf(store), ['free', 'none', 'taken']);
  });

  it('names the character of a row that no text can have', async (t) => {
    const { store } = await connect(t);
    const rows = [{ name: 'Fern\nOak' }, { name: 'Ivy', tag: '\tin' }, { name: 'Ivy\u0007' }];
    const outcomes = await run(store, rows.map(toRow));
    assert.deepEqual(
      outcomes.map(({ reason }) => reason),
      [
        'The name has a line break behind "Fern". Remove it.',
        'The tag has a tab at its beginning. Remove it.',
        'The name has an invisible character (<U+0007>) behind "Ivy". Remove it.',
      ],
    );
  });

  it('updates the plants that have the id of a row', async (t) => {
    const { store, clientOf } = await connect(t);
    const bob = await clientOf('bob', { scopes: ['plants:write', 'shares:write'] });
    await bob.create({ name: 'of bob', id: 5 });
    await bob.share('alice', 'read');
    for (const id of [1, 2, 3]) await store.create({ name: `old ${id}`, tag: 'a', id });
    const plants = [
      { id: 1, name: 'old 1', tag: 'a' },
      { id: 2, name: 'new 2' },
      { id: 3, name: 'new 3', tag: '' },
      { id: 5, name: 'mine' },
      { id: 7, name: 'added' },
      { name: 'added too' },
    ];
    const outcomes = await run(store, plants.map(toRow), true);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['unchanged', 'updated', 'updated', 'refused', 'added', 'added'],
    );
    const fields = ['id', 'name', 'tag'] as const;
    const listed = () => Array.fromAsync(store.list({ fields }), (plant) => Object.values(plant));
    assert.deepEqual(await listed(), [
      [1, 'old 1', 'a'],
      [2, 'new 2', 'a'],
      [3, 'new 3', ''],
      [5, 'of bob', ''],
      [7, 'added', ''],
      [8, 'added too', ''],
    ]);
  });

  it('is undone for what nobody has changed since, and with the fields of its rows', async (t) => {
    const { store, clientOf } = await connect(t);
    for (const id of [1, 2, 3]) await store.create({ name: 'A', tag: 'a', id });
    const plants = [
      { id: 1, name: 'X' },
      { id: 1, name: 'X', tag: 'x' },
      { id: 2, name: 'X' },
      { id: 3, name: 'X' },
      { id: 4, name: 'added' },
      { id: 4, name: 'and updated' },
      { id: 5, name: 'recreated' },
    ];
    const done = await run(store, plants.map(toRow), true, 1);
    assert.deepEqual(
      done.map(({ before }) => before),
      [
        { name: 'A' },
        { name: 'X', tag: 'a' },
        { name: 'A' },
        { name: 'A' },
        undefined,
        { name: 'added' },
        undefined,
      ],
    );
    await store.update(2, { tag: 'of somebody' });
    await store.delete(3);
    await store.delete(5);
    const manager = await clientOf('zoe', { role: 'manager' });
    await manager.create({ name: 'recreated', id: 5 });
    const undone = await Array.fromAsync(undoImport(manager, done, 32), ({ id, isUndone }) => {
      return isUndone && id;
    });
    assert.deepEqual(new Set(undone), new Set([1, 4, false]));
    const fields = ['id', 'name', 'tag'] as const;
    assert.deepEqual(await Array.fromAsync(manager.list({ fields }), Object.values), [
      [1, 'A', 'a'],
      [2, 'X', 'of somebody'],
      [5, 'recreated', ''],
    ]);
  });

  it('ends with the problem if the token is refused or cannot write', async (t) => {
    const { app, clientOf } = await connect(t);
    const reader = await clientOf('alice', { scopes: ['plants:read'] });
    await assert.rejects(run(reader, rowsOf(50)), { kind: 'insufficient-scope' });
    const stranger = new PlantStore({ url: app.address, token: 'plant_0' });
    await assert.rejects(run(stranger, rowsOf(50)), { kind: 'invalid-token' });
  });
});

/** The sorted names of alice's plants. */
async function namesOf(store: PlantStore): Promise<string[]> {
  return (await Array.fromAsync(store.list(), ({ name }) => name)).toSorted();
}

/** The outcomes in the order of the rows. */
async function run(
  store: PlantStore,
  rows: readonly ImportRow[],
  update = false,
  concurrency = 32,
): Promise<ImportOutcome[]> {
  const { signal } = new AbortController();
  const options = { store, rows, keyOf: keyOfRow, update, concurrency, signal };
  const outcomes = await Array.fromAsync(importPlants(options));
  return outcomes.toSorted((one, other) => one.row - other.row);
}

const keyOfRow = (_: unknown, row: number) => `row ${row}`;

function toRow(plant: object, at = 0) {
  return { line: at + 2, plant: plant as { name: string } }; // a file can contain anything
}

const rowsOf = (count: number) =>
  Array.from({ length: count }, (_, at) => toRow({ name: `Plant ${at}` }, at));
