/**
 * Imports in memory, on the service in this process.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Scope } from '../../src/access/access.ts';
import { PlantStore } from '../../src/client/client.ts';
import type { ImportOutcome } from '../../src/client/import-outcome.ts';
import type { ImportRow } from '../../src/client/read-rows.ts';
import { importPlants } from '../../src/client/send-rows.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { Proxy } from '../support/proxy.ts';
import { seededRandom } from '../support/random.ts';

/** Stops an import and cuts its connections at random moments, while another client adds equal plants. */
export async function interrupted(t: TestContext, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const { app, names, store: other } = await start(t);
  await using proxy = await Proxy.to(app.port);
  const url = `http://127.0.0.1:${proxy.port}`;
  const store = new PlantStore({
    url,
    token: await app.token('alice'),
    beforeRetry: async () => {},
  });
  const rows = rowsOf(200);
  const expected = rows.map(({ plant }) => plant.name);
  const done = new AbortController();
  const randomOfOther = seededRandom(-seed);
  const adding = (async () => {
    while (!done.signal.aborted) {
      const name = `Plant ${Math.floor(randomOfOther() * 200)}`;
      await other.create({ name });
      expected.push(name);
    }
  })();
  const added = new Set<number>();
  for (let rounds = 0, isDone = false; !isDone; rounds++) {
    let left = rounds < 4 ? Math.floor(random() * 100) : Infinity;
    let cuts = 5;
    proxy.bytesToLive = () => (rounds < 4 && cuts-- > 0 ? random() * 4_000 : Infinity);
    const stop = new AbortController();
    let count = 0;
    try {
      const { signal } = stop;
      const options = { store, rows, keyOf: keyOfRow, concurrency: 8, signal };
      for await (const { row, status } of importPlants(options)) {
        count++;
        if (status === 'added') {
          assert.ok(!added.has(row), `row ${row} was added twice, seed ${seed}`);
          added.add(row);
        }
        if (left-- === 0) stop.abort();
      }
      isDone = true;
      assert.equal(count, rows.length, `seed ${seed}`);
    } catch (error) {
      assert.equal(error, stop.signal.reason, `seed ${seed}`);
    }
  }
  done.abort();
  await adding;
  assert.deepEqual(await names(), expected.toSorted(), `seed ${seed}`);
}

interface Started {
  app: TestApp;
  store: PlantStore;
  /** The sorted names of alice's plants. */
  names: () => Promise<string[]>;
}

export async function start(t: TestContext): Promise<Started> {
  const app = await startApp(t);
  const store = await storeOf(app);
  const names = async () => {
    const plants = await Array.fromAsync(store.list());
    return plants.map(({ name }) => name).toSorted();
  };
  return { app, store, names };
}

export async function storeOf(app: TestApp, scopes?: readonly Scope[]): Promise<PlantStore> {
  const token = await app.token('alice', scopes && { scopes });
  return new PlantStore({ url: app.address, token });
}

/** The outcomes in the order of the rows. */
export async function run(store: PlantStore, rows: readonly ImportRow[]): Promise<ImportOutcome[]> {
  const { signal } = new AbortController();
  const options = { store, rows, keyOf: keyOfRow, concurrency: 32, signal };
  const outcomes = await Array.fromAsync(importPlants(options));
  return outcomes.toSorted((one, other) => one.row - other.row);
}

const keyOfRow = (_: unknown, row: number) => `row ${row}`;

export function toRow(plant: object, at = 0) {
  return { line: at + 2, plant: plant as { name: string } }; // a file can contain anything
}

export const rowsOf = (count: number) =>
  Array.from({ length: count }, (_, at) => toRow({ name: `Plant ${at}` }, at));
