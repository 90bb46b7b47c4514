/**
 * Searches for random texts among random plants: both storages find what a plain filter finds.
 */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { ReadAccess } from '../src/access/access.ts';
import { fold } from '../src/plants/folding.ts';
import { plantJson } from './support/plain-plants.ts';
import { seededRandom } from './support/random.ts';
import { rounds, sizeOf } from './support/rounds.ts';
import { addRows, rowsOf } from './support/rows.ts';
import { openedOn, storageNames } from './support/storages.ts';

/** Few, so that texts often contain each other, in other forms. */
const ascii = Array.from('aAeEiIosSt1% _[');
const characters = [
  ...ascii,
  ...Array.from('äÄåéÉİıßẞøłŁæﬁＡ\u212A×’–\u00A0'),
  ...Array.from('\u0301\u0308\u0316\uFE0F\u3099\u1161\u11A8'),
  ...Array.from('сСёЁσςΣ한하국カガｶ木🌵👩\u{1D4E1}\uFDFA'),
];
const owners = 20;
const count = sizeOf({ usual: 1_500, long: 5_000 });
const searches = sizeOf({ usual: 300, long: 1_200 });

it('both storages find what a plain filter finds', (t) => rounds(t, agreeOnSearches));

async function agreeOnSearches(t: TestContext, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const below = (bound: number) => Math.floor(random() * bound);
  const anyOf = <T>(all: readonly T[]): T => all[below(all.length)] as T; // none is empty
  const text = (max: number) => {
    const some = random() < 0.3 ? ascii : characters;
    return Array.from({ length: 1 + below(max) }, () => anyOf(some)).join('');
  };
  const tags = ['', ...Array.from({ length: 5 }, () => text(5))];
  const plants = Array.from({ length: count }, (_, at) => ({
    id: 2 * at + 1,
    owner: 1 + below(owners),
    name: `${text(random() < 0.01 ? 199 : 12)}x`, // not blank
    tag: anyOf(tags),
  }));
  const folded = plants.map((one) => [fold(one.name), fold(one.tag)] as const);
  const storages = await Promise.all(storageNames.map((name) => openedOn(t, name)));
  const rows = rowsOf([{ store: 1, plants }], owners);
  await Promise.all(storages.map(({ url }) => addRows(url, rows)));

  const partOf = (whole: string) => {
    const points = Array.from(whole);
    const from = below(points.length);
    return points.slice(from, from + 1 + below(5)).join('');
  };
  for (let done = 0; done < searches;) {
    const part = random() < 0.5 ? text(3) : partOf(anyOf(plants).name);
    const q = anyOf([part, part.toUpperCase(), part.normalize('NFD')]);
    const wanted = fold(q);
    if (wanted.trim() === '') continue; // refused before
    done++;
    const read = anyOf([
      'all',
      [below(owners)],
      [1, 2, 3],
      Array.from({ length: owners }, (_, at) => at + 1),
    ] as const);
    const tag = random() < 0.2 ? anyOf(tags) : undefined;
    const [after, limit] = [random() < 0.5 ? 0 : below(2 * count), anyOf([1, 20, 1_000])];
    const all = plants.filter(
      (one, at) =>
        one.id > after &&
        (read === 'all' || read.some((owner) => owner === one.owner)) &&
        (tag ?? one.tag) === one.tag &&
        folded[at]?.some((each) => each.includes(wanted)),
    );
    const page = all.slice(0, limit);
    const expected = {
      json: page.map((one) => plantJson(one, ['id'])).join(),
      next: page.length < all.length ? page.at(-1)?.id : undefined,
    };
    const caller: ReadAccess = { store: 1, user: 1, read, write: [], scopes: new Set() };
    for (const { storage } of storages) {
      const query = { after, limit, tag, q, fields: ['id'] } as const;
      const shown = JSON.stringify({ seed, q, tag, read, after, limit });
      assert.deepEqual(await storage.plants.list(caller, query), expected, shown);
    }
  }
}
