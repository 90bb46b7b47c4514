import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PlantPages, type Plant } from '../../src/web/plant-pages.ts';
import { until } from '../support/until.ts';

const plant = (id: number): Plant => ({ id, name: `Plant ${id}`, tag: '' });

/** A list of these plants. `beforeReply` runs after each read, before its reply arrives. */
async function listOf(plants: Plant[], beforeReply: (reads: number) => void): Promise<PlantPages> {
  let reads = 0;
  const read = async (after = 0) => {
    const page = plants.filter(({ id }) => id > after).slice(0, 250);
    beforeReply(++reads);
    return page;
  };
  const pages: PlantPages = new PlantPages(read, () => {});
  return pages;
}

async function shown(pages: PlantPages): Promise<number[]> {
  pages.see(0, 10);
  await until('the list ends', () => {
    pages.see(0, 10);
    return pages.isComplete;
  });
  return pages.slice(0, 10).map((row) => row?.id ?? 0);
}

it('shows a plant that was added while the end of the list was read', async () => {
  const plants = [plant(1), plant(2)];
  const pages = await listOf(plants, (reads) => {
    if (reads !== 2) return;
    plants.push(plant(3));
    assert.equal(pages.add(plant(3)), undefined, 'its place is not known yet');
  });
  assert.deepEqual(await shown(pages), [1, 2, 3]);
});

it('shows a plant once that was read before it is added', async () => {
  const pages = await listOf([plant(1), plant(5), plant(9)], () => {});
  assert.deepEqual(await shown(pages), [1, 5, 9]);
  assert.equal(pages.add(plant(5)), 1);
  assert.deepEqual(await shown(pages), [1, 5, 9]);
  assert.equal(pages.count, 3);
});
