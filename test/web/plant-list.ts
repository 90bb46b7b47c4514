import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Plant } from '../../src/client/client.ts';
import { orders } from '../../src/web/table/orders.ts';
import { PlantList, type PlantSource } from '../../src/web/table/plant-list.ts';
import { until } from '../support/until.ts';

const plant = (id: number): Plant => ({
  id,
  name: `Plant ${id}`,
  tag: '',
  owner: 'alice',
  access: 'write',
});

/** A list of these plants. `beforeReply` runs after each read, before its reply arrives. */
function listOf(plants: Plant[], beforeReply: (reads: number) => void): PlantList {
  let reads = 0;
  return listFrom(async function* () {
    const page = [...plants];
    beforeReply(++reads);
    yield { plants: page, isLast: true };
  });
}

const listFrom = (pages: PlantSource['pages'], { compare, count } = byIds) =>
  new PlantList({ pages, compare, count }, () => {});
const byIds = { compare: orders.id, count: async () => 0 };

async function shown(list: PlantList): Promise<number[]> {
  list.see(10);
  await until('the list ends', () => {
    list.see(10);
    return list.isComplete;
  });
  return list.plants.slice(0, 10).map((row) => row.id);
}

it('shows a plant that was added while the end of the list was read', async () => {
  const plants = [plant(1), plant(2)];
  const list = listOf(plants, (reads) => {
    if (reads !== 1) return;
    plants.push(plant(3));
    list.add([plant(3)]);
    assert.equal(list.active, 0, 'its place is not known yet');
  });
  assert.deepEqual(await shown(list), [1, 2, 3]);
});

it('shows a plant once that was read before it is added', async () => {
  const list = listOf([plant(1), plant(5), plant(9)], () => {});
  assert.deepEqual(await shown(list), [1, 5, 9]);
  list.add([plant(5)]);
  assert.equal(list.active, 1);
  assert.deepEqual(await shown(list), [1, 5, 9]);
  assert.equal(list.count, 3);
});

it('shows a plant as it was changed while it was read', async () => {
  const list = listOf([plant(1), plant(2)], (reads) => {
    if (reads === 1) list.replace([{ ...plant(2), name: 'Changed' }]);
  });
  await shown(list);
  assert.equal(list.plants.slice(1, 2)[0]?.name, 'Changed');
});

it('reads no further than the table can show', async () => {
  let reads = 0;
  const list = listFrom(async function* () {
    for (; ; reads++) {
      const plants = Array.from({ length: 25_000 }, (_, at) => plant(reads * 25_000 + at + 1));
      yield { plants, isLast: false };
    }
  });
  list.see(1_000_000);
  await until('the list is full', () => list.isFull);
  list.see(1_000_000);
  assert.equal(list.count, 100_000);
  assert.deepEqual([list.isComplete, reads], [false, 3]);
});

it('shows changes where they belong, and the keyboard stays at its plant', async () => {
  const list = listOf([plant(2), plant(5), plant(9)], () => {});
  await shown(list);
  list.active = 1;
  const renamed = { ...plant(9), name: 'Renamed' };
  const changes = [
    [1, plant(1)],
    [2, undefined],
    [3, plant(3)],
    [9, renamed],
    [12, plant(12)],
  ] as const;
  list.apply(new Map(changes));
  assert.deepEqual(await shown(list), [1, 3, 5, 9, 12]);
  assert.deepEqual([list.plants[list.active]?.id, list.find(9)], [5, renamed]);
  list.apply(new Map([[5, undefined]]));
  assert.equal(list.plants[list.active]?.id, 9, 'the next one');
  list.apply(new Map([9, 12].map((id) => [id, undefined])));
  assert.equal(list.plants[list.active]?.id, 3, 'the last one');
});

it('keeps the row of a plant that is held, also if it is gone, until it is released', async () => {
  const plants = [plant(1), plant(2), plant(3)];
  const list = listOf(plants, () => {});
  await shown(list);
  list.hold(2);
  list.apply(new Map([[2, undefined]]));
  plants.splice(1, 1);
  list.refresh();
  await list.settled();
  assert.deepEqual(await shown(list), [1, 2, 3]);
  list.release();
  assert.deepEqual(await shown(list), [1, 3]);
  list.hold(3);
  list.apply(new Map([[3, undefined]]));
  list.replace([plant(3)]); // it is back
  list.release();
  assert.deepEqual(await shown(list), [1, 3]);
});

it('reads its rows again, and what changes meanwhile is newer', async () => {
  const plants = [plant(1), plant(2), plant(3)];
  const renamed = { ...plant(1), name: 'Renamed' };
  const list: PlantList = listOf(plants, (reads) => {
    if (reads === 2) list.apply(new Map([[1, renamed]]));
  });
  await shown(list);
  plants.splice(1, 2, plant(4));
  list.refresh();
  await list.settled();
  assert.deepEqual(await shown(list), [1, 4]);
  assert.equal(list.plants[0], renamed);
});

it('sorts as the service does, with the plants in their places that others rename or add', async () => {
  const names = ['Aloe', 'Élan', 'fern', 'Ivy', 'Zinnia'];
  const plants = names.map((name, at) => ({ ...plant(50 - at), name }));
  for (const sort of ['name', '-name'] as const) {
    const sorted = sort === 'name' ? plants : plants.toReversed();
    const source = { compare: orders[sort], count: async () => 7 };
    const list = listFrom(async function* () {
      yield { plants: sorted.slice(0, 3), isLast: false };
      await ended.promise;
      yield { plants: sorted.slice(2), isLast: true }; // the third one is in both, as if it was renamed
    }, source);
    const ended = Promise.withResolvers<void>();
    const shownNames = () => list.plants.map(({ name }) => name);
    list.see(0);
    await until('the rest is counted', () => list.total === 7);
    const [first] = sorted;
    assert.ok(first);
    list.apply(new Map([[1, { ...plant(1), name: 'Daisy' }]]));
    list.apply(new Map([[2, { ...plant(2), name: 'DAISY' }]]));
    list.apply(new Map([[first.id, { ...first, name: 'Eibe' }]]));
    const known = { name: ['Daisy', 'DAISY', 'Eibe', 'Élan', 'fern'], '-name': ['Ivy', 'fern'] };
    assert.deepEqual(shownNames(), known[sort]);
    assert.equal(list.placeOf(first), 0, 'the table stays there, and does not follow the plant');
    list.active = 1;
    ended.resolve();
    await until('all are read', () => list.isComplete);
    const all = {
      name: [...known.name, 'Ivy', 'Zinnia'],
      '-name': ['Ivy', 'fern', 'Élan', 'Eibe', 'Daisy', 'DAISY', 'Aloe'],
    };
    assert.deepEqual(shownNames(), all[sort]);
    assert.equal(list.plants[list.active]?.name, known[sort][1]);
  }
});
