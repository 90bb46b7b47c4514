/**
 * Sorts and counts the plants of random stores: both storages return what a plain sort does.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ReadAccess } from '../src/access/access.ts';
import { fold } from '../src/plants/folding.ts';
import type { PlantCursor } from '../src/plants/plant-storage.ts';
import { sorts } from '../src/plants/scans.ts';
import { plantJson } from './support/plain-plants.ts';
import { seededRandom } from './support/random.ts';
import { firstSeed, sizeOf } from './support/rounds.ts';
import { addRows, rowsOf } from './support/rows.ts';
import { openedOn, storageNames } from './support/storages.ts';

/** Few, so that names are often equal once they are folded. Some sort in another order by code points than by UTF-16. */
const characters = Array.from('aAbB1 ~äÅßẞøłﬁＡ×’сСёσς한ガ木🌵\u0301\uFE0F\uFF5A\uFDFA\u{1D4E1}');
const tags = ['', 'indoor', 'Ä'];
const owners = 5;
const stores = sizeOf({ usual: 200, long: 10_000 });
/** Stores that are filled and read together. */
const storesAtOnce = 200;
/** Enough for all plants of most stores. */
const maxPages = 5;

it(`both storages sort and count as a plain sort does (PLANT_STORE_TEST_SEED=${firstSeed})`, async (t) => {
  const random = seededRandom(firstSeed);
  const below = (bound: number) => Math.floor(random() * bound);
  const anyOf = <T>(all: readonly T[]): T => all[below(all.length)] as T; // none is empty
  const text = (max: number) =>
    Array.from({ length: 1 + below(max) }, () => anyOf(characters)).join('');
  const storages = await Promise.all(storageNames.map((name) => openedOn(t, name)));

  for (let first = 1; first <= stores; first += storesAtOnce) {
    const batch = Array.from({ length: storesAtOnce }, (_, at) => {
      // Few are longer than a step of an engine, and than what is collected besides a page.
      const count = random() < 0.02 ? 300 + below(2_500) : below(30);
      const longest = random() < 0.01 ? 199 : anyOf([1, 3, 10]);
      const plants = Array.from({ length: count }, (_plant, id) => ({
        id: 2 * id + 1,
        owner: 1 + below(owners),
        name: `${text(longest)}x`, // not blank
        tag: anyOf(tags),
      }));
      return { store: first + at, plants };
    });
    await Promise.all(storages.map(({ url }) => addRows(url, rowsOf(batch, owners))));
    for (const { store, plants } of batch) {
      const read = anyOf(['all', [below(owners)], [1, 2], [1, 2, 3, 4, 5]] as const);
      const caller: ReadAccess = { store, user: 1, read, write: [], scopes: new Set() };
      const [sort, limit] = [anyOf(sorts), anyOf([1, 7, 100, 1_000])];
      const tag = random() < 0.2 ? anyOf(tags) : undefined;
      const q = random() < 0.2 ? anyOf(['a', 'Å', 'x', 'SS']) : undefined;
      const expected = plants
        .filter(({ owner }) => read === 'all' || read.some((one) => one === owner))
        .filter((plant) => (tag ?? plant.tag) === plant.tag)
        .map((plant) => ({ ...plant, key: fold(plant.name) }))
        .filter(({ key, tag: own }) =>
          [key, fold(own)].some((each) => each.includes(fold(q ?? ''))),
        )
        .toSorted((a, b) => {
          if (a.key === b.key) return a.id - b.id;
          return a.key < b.key === (sort === 'name') ? -1 : 1;
        });
      const pages = Array.from(
        { length: Math.max(1, Math.ceil(expected.length / limit)) },
        (_, at) =>
          expected
            .slice(at * limit, (at + 1) * limit)
            .map((one) => plantJson(one, ['id']))
            .join(),
      ).slice(0, maxPages);
      for (const { storage } of storages) {
        const shown = JSON.stringify({ seed: firstSeed, store, read, sort, limit, tag, q });
        assert.equal(await storage.plants.count(caller, { tag, q }), expected.length, shown);
        const query = { sort, limit, tag, q, fields: ['id'] } as const;
        const found: string[] = [];
        let after: PlantCursor | undefined = 0;
        while (after !== undefined && found.length < maxPages) {
          const page = await storage.plants.list(caller, { ...query, after });
          found.push(page.json);
          after = page.next;
        }
        assert.deepEqual(found, pages, shown);
      }
    }
  }
});
