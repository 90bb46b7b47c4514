/**
 * Imports in memory, on the service in this process.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Role, Scope } from '../../src/access/access.ts';
import { PlantStore, type NewPlant } from '../../src/client/client.ts';
import { memoryJournal } from '../../src/client/import-journal.ts';
import type { ImportOutcome } from '../../src/client/import-outcome.ts';
import type { ImportRow } from '../../src/client/read-rows.ts';
import { importPlants } from '../../src/client/send-rows.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { Proxy } from '../support/proxy.ts';
import { seededRandom } from '../support/random.ts';

/** Stops an import and cuts its connections at random moments, while other clients add equal plants. */
export async function interrupted(
  t: TestContext,
  role: Role,
  seed: number,
  first?: NewPlant,
): Promise<void> {
  const random = seededRandom(seed);
  const { app, names, store: direct } = await start(t, role);
  if (first !== undefined) await direct.create(first);
  await using proxy = await Proxy.to(app.port);
  const url = `http://127.0.0.1:${proxy.port}`;
  const token = await app.token('alice', { role });
  const store = new PlantStore({ url, token, beforeRetry: async () => {} });
  const others = [await storeOf(app, 'alice', role), await storeOf(app, 'bob', 'member')];
  const rows = rowsOf(200);
  // A member's row without an id whose outcome is unknown is found by its content, so only a manager adds equal plants.
  const tag = role === 'manager' ? '' : 'other';
  const expected = rows.map(({ plant }) => plant.name);
  const journal = memoryJournal();
  const done = new AbortController();
  const randomOfOthers = seededRandom(-seed);
  const adding = others.map(async (other, at) => {
    while (!done.signal.aborted) {
      const name = `Plant ${Math.floor(randomOfOthers() * 200)}`;
      const { id } = await other.create({ name, tag });
      if (at === 1 && id % 3 === 0) await other.delete(id);
      else if (role === 'manager') expected.push(name);
    }
  });
  const outcomes = new Map<number, ImportOutcome>();
  for (let rounds = 0; outcomes.size < rows.length; rounds++) {
    let left = rounds < 4 ? Math.floor(random() * 100) : Infinity;
    let cuts = 5;
    proxy.bytesToLive = () => (rounds < 4 && cuts-- > 0 ? random() * 4_000 : Infinity);
    const stop = new AbortController();
    try {
      const { signal } = stop;
      const running = importPlants({ store, rows, journal, concurrency: 8, signal });
      for await (const outcome of running) {
        outcomes.set(outcome.row, outcome);
        if (left-- === 0) stop.abort();
      }
    } catch (error) {
      assert.equal(error, stop.signal.reason, `seed ${seed}`);
    }
  }
  done.abort();
  await Promise.all(adding);
  assert.deepEqual(await names(''), expected.toSorted(), `seed ${seed}`);
}

interface Started {
  app: TestApp;
  store: PlantStore;
  /** The sorted names of alice's plants with this tag. */
  names: (tag?: string) => Promise<string[]>;
}

export async function start(t: TestContext, role: Role = 'member'): Promise<Started> {
  const app = await startApp(t);
  const store = await storeOf(app, 'alice', role);
  const names = async (tag?: string) => {
    const plants = await Array.fromAsync(store.list({ tag }));
    return plants.map(({ name }) => name).toSorted();
  };
  return { app, store, names };
}

export async function storeOf(
  app: TestApp,
  user: string,
  role: Role,
  scopes?: readonly Scope[],
): Promise<PlantStore> {
  const token = await app.token(user, { role, ...(scopes && { scopes }) });
  return new PlantStore({ url: app.address, token });
}

export function run(
  store: PlantStore,
  rows: readonly ImportRow[],
  { journal = memoryJournal() } = {},
): Promise<ImportOutcome[]> {
  const { signal } = new AbortController();
  return Array.fromAsync(importPlants({ store, rows, journal, concurrency: 32, signal }));
}

export function toRow(plant: object, at = 0) {
  return { line: at + 2, plant: plant as { name: string } }; // a file can contain anything
}

export const rowsOf = (count: number) =>
  Array.from({ length: count }, (_, at) => toRow({ name: `Plant ${at}` }, at));

export function countsOf(outcomes: readonly ImportOutcome[]) {
  const counts = { added: 0, 'already added': 0, refused: 0 };
  for (const { status } of outcomes) counts[status]++;
  return counts;
}
