/**
 * The import on a real service. test/cli/import.test.ts interrupts it.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PlantStore } from '../../src/client/client.ts';
import type { ImportOutcome } from '../../src/client/send-rows.ts';
import type { ImportRow } from '../../src/client/read-rows.ts';
import { importPlants } from '../../src/client/send-rows.ts';
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
    const faulty = { line: 9, fault: 'not a row' };
    const outcomes = await run(store, [...plants.map(toRow), faulty]);
    assert.deepEqual(outcomes[0], { row: 1, line: 2, status: 'added', id: 1 });
    assert.deepEqual(outcomes.at(-1), { row: 6, line: 9, status: 'refused', reason: 'not a row' });
    assert.match(outcomes[1]?.reason ?? '', /^"name" is empty\. Use a string of /);
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
async function run(store: PlantStore, rows: readonly ImportRow[]): Promise<ImportOutcome[]> {
  const { signal } = new AbortController();
  const options = { store, rows, keyOf: keyOfRow, concurrency: 32, signal };
  const outcomes = await Array.fromAsync(importPlants(options));
  return outcomes.toSorted((one, other) => one.row - other.row);
}

const keyOfRow = (_: unknown, row: number) => `row ${row}`;

function toRow(plant: object, at = 0) {
  return { line: at + 2, plant: plant as { name: string } }; // a file can contain anything
}

const rowsOf = (count: number) =>
  Array.from({ length: count }, (_, at) => toRow({ name: `Plant ${at}` }, at));
