/**
 * What src/access/share-storage.ts promises, as tests that every storage runs.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { everyone, maxOwnersInReach, type Caller } from '../src/access/access.ts';
import type { PlantCursor } from '../src/plants/plant-storage.ts';
import { maxGivenShares } from '../src/access/share-storage.ts';
import { inParallel } from '../src/client/in-parallel.ts';
import { addGivenShares, addOwners } from './support/many-rows.ts';
import { create } from './support/plain-plants.ts';
import { idsOf, listOf, ownScene, rejectsWith, type Scene } from './support/scene.ts';
import type { StorageName } from './support/storages.ts';

export function shareContract(engine: StorageName, scene: () => Scene): void {
  describe(`${engine}: shares`, () => {
    it('with everyone reach those who join later, and allow what either of two shares does', async () => {
      const { storage, caller, share } = scene();
      const { store } = await caller('alice');
      const plant = await create(storage, await caller('alice'), { name: 'hers' });
      const accessOf = async (name: string) => {
        const { read, write } = await caller(name);
        const { received } = await storage.shares.of(store, name);
        const shown = received.map(({ owner, access, isTeam }) => [owner, access, isTeam]);
        return [read.length, write.length, ...shown.flat()];
      };
      assert.equal(await share('alice', everyone, 'read'), true);
      assert.deepEqual(await idsOf(storage, await caller('joins later')), [plant.id]);
      assert.deepEqual(await accessOf('bob'), [2, 1, 'alice', 'read', true]);
      assert.deepEqual(await accessOf('alice'), [1, 1]);
      await share('alice', 'bob', 'write');
      assert.deepEqual(await accessOf('bob'), [2, 2, 'alice', 'write', false]);
      assert.deepEqual(await accessOf('carol'), [2, 1, 'alice', 'read', true]);
      await share('alice', 'bob', 'read');
      assert.equal(await share('alice', everyone, 'write'), false);
      assert.deepEqual(await accessOf('bob'), [2, 2, 'alice', 'write', false]);
      const ends = { owner: 'alice', user: everyone };
      assert.equal(await storage.shares.find(store, ends), 'write');
      assert.equal(await storage.shares.end(store, [ends]), true);
      assert.equal(await storage.shares.find(store, ends), undefined);
      assert.deepEqual(await accessOf('bob'), [2, 1, 'alice', 'read', false]);
      assert.deepEqual(await accessOf('carol'), [1, 1]);
      const { given } = await storage.shares.of(store, 'alice');
      assert.deepEqual(given, [{ owner: 'alice', user: 'bob', access: 'read' }]);
    });

    it('are listed by code point, of a user from both sides, and of a store page by page', async () => {
      const { storage, caller, callers, share } = scene();
      const { store } = await caller('alice');
      await callers('bob', '\ufb00', '𝒳'); // UTF-16 has the last two in the other order
      const all = [
        { owner: 'alice', user: 'Bob', access: 'read' },
        { owner: 'alice', user: 'bob', access: 'write' },
        { owner: 'alice', user: '\ufb00', access: 'read' },
        { owner: 'alice', user: '𝒳', access: 'read' },
        { owner: 'bob', user: 'alice', access: 'read' },
        { owner: '\ufb00', user: 'alice', access: 'write' },
        { owner: '𝒳', user: 'alice', access: 'read' },
      ] as const;
      for (const { owner, user, access } of all.toReversed()) await share(owner, user, access);
      const { given, received } = await storage.shares.of(store, 'alice');
      const inEffect = all.slice(4).map((each) => ({ ...each, isTeam: false }));
      assert.deepEqual([given, received], [all.slice(0, 4), inEffect]);
      assert.deepEqual(await storage.shares.of(store, 'nobody'), { given: [], received: [] });
      const first = await storage.shares.list(store, undefined, 2);
      assert.deepEqual(first, all.slice(0, 2));
      assert.deepEqual(await storage.shares.list(store, first[1], 10), all.slice(2));
      assert.deepEqual(await storage.shares.list(store, all.at(-1), 10), []);
    });

    it('have a maximum for each owner, who can change and replace them', async (t) => {
      const { storage, database, caller, share } = await ownScene(t, engine);
      const { store } = await caller('alice');
      await database.run(addGivenShares(maxGivenShares - 1));
      assert.equal(await share('alice', 'the last one', 'read'), true);
      await rejectsWith('too-many-shares', share('alice', 'one more', 'read'));
      assert.equal(await share('alice', 'user 7', 'write'), false);
      assert.equal((await storage.shares.of(store, 'alice')).given.length, maxGivenShares);
      await storage.shares.end(store, [{ owner: 'alice', user: 'user 3' }]);
      assert.equal(await share('alice', 'one more', 'read'), true);
    });

    it('merge the plants of the owners who shared first, up to a maximum', async (t) => {
      const { storage, database, token } = await ownScene(t, engine);
      const bob = await token('bob');
      await database.run(addOwners(maxOwnersInReach + 1, 'bob'));
      await database.run('UPDATE shares SET since = -since'); // the last owner has shared first
      const own = await create(storage, await bob.caller(), { name: 'his', id: 2_000 });
      const inEffect = Array.from({ length: maxOwnersInReach - 1 }, (_, at) => {
        const id = at + 3;
        return { id, name: `n${id}`, tag: id % 2 === 1 ? 'odd' : '' };
      });
      const caller = await bob.caller();
      assert.equal(caller.read.length, maxOwnersInReach);
      assert.deepEqual(await listOf(storage, caller, { limit: 2_000 }), [...inEffect, own]);
      assert.deepEqual(
        await listOf(storage, caller, { limit: 2_000, tag: 'odd' }),
        inEffect.filter(({ tag }) => tag === 'odd'),
      );
      const { received } = await storage.shares.of(caller.store, 'bob');
      assert.equal(received.length, maxOwnersInReach - 1);
      await storage.shares.end(caller.store, [{ owner: 'owner 5', user: 'bob' }]);
      const now = await idsOf(storage, await bob.caller(), { limit: 2_000 });
      assert.deepEqual([now.includes(5), now.includes(2), now.includes(1)], [false, true, false]);
    });

    it('list each plant that stays exactly once, while others come and go between the steps', async () => {
      const { storage, caller } = scene();
      const owners: Caller[] = [];
      for (let at = 0; at < 60; at++) owners.push(await caller(`owner ${at}`));
      // Dense at first, then with long stretches out of reach.
      const ownerOf = (id: number) =>
        owners[id <= 300 || id % 50 === 0 ? id % 20 : id % 60] ?? assert.fail();
      const stays = (id: number) => id % 10 === 0 || id % 7 === 3;
      const staying = Array.from({ length: 1_500 }, (_, at) => at + 1).filter(stays);
      const add = (id: number) => create(storage, ownerOf(id), { id, name: `n${id}`, tag: 't' });
      await Array.fromAsync(inParallel(staying, 16, add)); // a busy machine would refuse to queue all of them
      const inReach = owners.slice(0, 20).map((each) => each.user);
      const who = { ...ownerOf(0), read: inReach.toSorted((a, b) => a - b) };
      const expected = staying.filter((id) => inReach.includes(ownerOf(id).user));

      const stop = new AbortController();
      const change = async (first: number) => {
        for (let id = first; !stop.signal.aborted; id = (id * 7 + 1) % 1_500) {
          if (id === 0 || stays(id)) continue;
          if (!(await storage.plants.delete(ownerOf(id), id))) await add(id);
        }
      };
      const changes = Promise.all([change(1), change(2), change(4)]);
      try {
        for (const query of [{}, { tag: 't' }, { sort: '-name' }] as const) {
          for (const limit of [40, 400, 2_000]) {
            const found: number[] = [];
            for (let after: PlantCursor | undefined = 0; after !== undefined;) {
              const range = { after, limit, fields: ['id'], ...query } as const;
              const { json, next } = await storage.plants.list(who, range);
              const plants: { id: number }[] = JSON.parse(`[${json}]`);
              assert.ok(plants.length <= limit);
              found.push(...plants.map(({ id }) => id));
              after = next;
            }
            const ascending = [...new Set(found)].toSorted((a, b) => a - b);
            if ('sort' in query) found.sort((a, b) => a - b);
            assert.deepEqual(found, ascending);
            assert.deepEqual(found.filter(stays), expected, `limit ${limit}`);
          }
        }
      } finally {
        stop.abort();
        await changes;
      }
    });
  });
}
