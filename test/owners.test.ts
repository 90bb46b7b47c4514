/**
 * Lists of many owners: dense parts of a store are searched, and sparse ones are merged (lists.ts).
 */
import assert from 'node:assert/strict';
import { openArchive } from '../src/cli/database.ts';
import type { ReadAccess } from '../src/access/access.ts';
import { it, testDatabase } from './support/storages.ts';

it('pages of many owners are complete, however their plants are distributed', async (t) => {
  const database = await testDatabase(t);
  await using storage = await database.open();
  const owners = Array.from({ length: 40 }, (_, at) => at + 1);
  const stranger = owners.length + 1;
  // Longer parts out of reach than a step of either engine, few plants of many owners, and many of one owner.
  const ownerOf = (id: number) => {
    if (id <= 300 || (id > 8_000 && id <= 8_500)) return owners[id % owners.length] ?? 0;
    if (id > 10_000 && id <= 11_500) return owners[0] ?? 0;
    return id % 400 === 0 ? (owners[(id / 400) % owners.length] ?? 0) : stranger;
  };
  await using archive = await openArchive(database.url, { create: false });
  const ids = Array.from({ length: 20_000 }, (_, at) => at + 1);
  await archive.add('stores', [[1, 'main', 20_000, 0]]);
  const users = [...owners, stranger].map((user) => [1, user, `user ${user}`, 'member', null, 0]);
  await archive.add('users', users);
  await archive.add(
    'plants',
    ids.map((id) => [1, id, ownerOf(id), id % 2 === 0 ? 'even' : '', `plant ${id}`]),
  );
  for (const count of [3, owners.length]) {
    const caller: ReadAccess = {
      store: 1,
      user: 1,
      read: owners.slice(0, count),
      write: [1],
      scopes: new Set(),
    };
    for (const filter of [{}, { tag: 'even' }, { q: 'ÉVEN' }, { tag: 'even', q: 'plant' }]) {
      const expected = ids.filter(
        (id) => ownerOf(id) <= count && (Object.keys(filter).length === 0 || id % 2 === 0),
      );
      for (const limit of [7, 100, 1_000]) {
        const found: number[] = [];
        for (let after: number | undefined = 0; after !== undefined;) {
          const fields = ['id'] as const;
          const page = await storage.plants.list(caller, { after, limit, ...filter, fields });
          const plants = JSON.parse(`[${page.json}]`) as { id: number }[]; // the fields of the query
          assert.ok(page.next === undefined || plants.length === limit);
          found.push(...plants.map(({ id }) => id));
          after = page.next;
        }
        assert.deepEqual(
          found,
          expected,
          `${count} owners, limit ${limit}, ${JSON.stringify(filter)}`,
        );
      }
    }
  }
});
