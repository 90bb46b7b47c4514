/**
 * What src/access/share-storage.ts promises, as tests that every storage runs.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  maxOwnersInReach,
  type Caller,
  type Role,
  type ShareAccess,
} from '../src/access/access.ts';
import { plantFields, type Plant } from '../src/plants/plant.ts';
import type { PlantQuery } from '../src/plants/plant-storage.ts';
import { inParallel } from '../src/client/in-parallel.ts';
import { maxGivenShares } from '../src/access/share-storage.ts';
import type { Storage } from '../src/storage.ts';
import type { StorageUnderTest } from './storage.contract.ts';
import { addGivenShares, addOwners } from './support/many-rows.ts';
import { create, find } from './support/plain-plants.ts';
import { identify } from './support/tokens.ts';

export function shareContract({ name, open, openAgain, run }: StorageUnderTest): void {
  describe(`${name}: shares`, () => {
    it('lets a user read, or read and delete, the plants of an owner who shares', async (t) => {
      const storage = await open(t);
      const [alice, bob] = [await user(storage, 'alice'), await user(storage, 'bob')];
      await create(storage, await alice(), { name: 'hers', id: 1 });
      await create(storage, await bob(), { name: 'his', id: 2 });
      assert.deepEqual(await ids(storage, await bob()), [2]);

      assert.equal(await share(storage, 'alice', 'bob', 'read'), true);
      assert.deepEqual(await ids(storage, await bob()), [1, 2]);
      assert.equal((await find(storage, await bob(), 1))?.name, 'hers');
      assert.equal(await storage.plants.delete(await bob(), 1), false);
      assert.deepEqual(await ids(storage, await alice()), [1]);

      assert.equal(await share(storage, 'alice', 'bob', 'write'), false);
      const { id } = await create(storage, await bob(), { name: 'new' });
      assert.deepEqual(await ids(storage, await alice()), [1]);
      assert.equal(await storage.plants.delete(await bob(), 1), true);
      assert.equal(await storage.plants.delete(await bob(), 1), false);
      assert.equal(await storage.plants.delete(await bob(), id), true);
      assert.deepEqual(await ids(storage, await alice()), []);
    });

    it('ends shares from either side, and says whether there was any', async (t) => {
      const storage = await open(t);
      const [alice, bob] = [await user(storage, 'alice'), await user(storage, 'bob')];
      await create(storage, await alice(), { name: 'hers', id: 1 });
      await share(storage, 'alice', 'bob', 'write');
      await share(storage, 'bob', 'alice', 'read');
      const { store } = await alice();
      const given = { owner: 'alice', user: 'bob' };
      const received = { owner: 'bob', user: 'alice' };
      assert.equal(await storage.shares.end(store, [given]), true);
      assert.equal(await storage.shares.end(store, [given]), false);
      assert.deepEqual(await ids(storage, await bob()), []);
      assert.deepEqual((await alice()).read.length, 2);
      assert.equal(await storage.shares.end(store, [given, received]), true);
      assert.equal(await storage.shares.end(store, [given, received]), false);
      assert.deepEqual((await alice()).read.length, 1);
      assert.equal(await storage.shares.end(store, [{ owner: 'nobody', user: 'bob' }]), false);
      assert.equal(await storage.shares.end(store + 1, [given]), false);
    });

    it('holds for a user who comes later, and only in its store', async (t) => {
      const storage = await open(t);
      const alice = await user(storage, 'alice');
      await create(storage, await alice(), { name: 'hers', id: 1 });
      assert.equal(await share(storage, 'alice', 'bob', 'read'), true);
      assert.equal(await share(storage, 'alice', 'bob', 'read'), false);
      const bob = await user(storage, 'bob');
      const stranger = await user(storage, 'bob', undefined, 'elsewhere');
      assert.deepEqual(await ids(storage, await bob()), [1]);
      assert.deepEqual(await ids(storage, await stranger()), []);
      const { given, received } = await storage.shares.of((await stranger()).store, 'bob');
      assert.deepEqual([given, received], [[], []]);
    });

    it('leaves the reach of a manager the whole store', async (t) => {
      const storage = await open(t);
      const manager = await user(storage, 'eve', 'manager');
      await user(storage, 'alice');
      await share(storage, 'alice', 'eve', 'read');
      const { read, write } = await manager();
      assert.deepEqual([read, write], ['all', 'all']);
      assert.equal((await storage.shares.of((await manager()).store, 'eve')).received.length, 1);
    });

    it('shows shares by name from both sides, and all shares of a store page by page', async (t) => {
      const storage = await open(t);
      for (const each of ['alice', 'bob', 'Zoë']) await user(storage, each);
      const all = [
        { owner: 'alice', user: 'Bob', access: 'read' },
        { owner: 'alice', user: 'bob', access: 'write' },
        { owner: 'bob', user: 'alice', access: 'read' },
        { owner: 'Zoë', user: 'alice', access: 'write' },
      ] as const;
      for (const { owner, user: other, access } of all.toReversed()) {
        await share(storage, owner, other, access);
      }
      const { store = 0 } = await storage.identity.findNames({ store: 'main', user: 'alice' });
      assert.deepEqual(await storage.shares.of(store, 'alice'), {
        given: [all[0], all[1]],
        received: [all[3], all[2]],
      });
      assert.deepEqual(await storage.shares.of(store, 'nobody'), { given: [], received: [] });
      const [first, second] = await storage.shares.list(store, undefined, 2);
      assert.deepEqual([first, second], [all[0], all[1]]);
      assert.deepEqual(await storage.shares.list(store, second, 10), [all[2], all[3]]);
      assert.deepEqual(await storage.shares.list(store, all[3], 10), []);
    });

    it('orders the names on both sides by code point', async (t) => {
      const storage = await open(t);
      const names = ['\ufb00', '𝒳']; // UTF-16 has them in the other order
      for (const each of ['alice', ...names]) await user(storage, each);
      for (const each of names) {
        await share(storage, 'alice', each, 'read');
        await share(storage, each, 'alice', 'read');
      }
      const { store = 0 } = await storage.identity.findNames({ store: 'main', user: 'alice' });
      const { given, received } = await storage.shares.of(store, 'alice');
      assert.deepEqual(
        given.map((each) => each.user),
        names,
      );
      assert.deepEqual(
        received.map(({ owner }) => owner),
        names,
      );
    });

    it('shows a change to every process from its next request on', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const [alice, bob] = [await user(storage, 'alice'), await user(storage, 'bob')];
      await create(storage, await alice(), { name: 'hers', id: 1 });
      for (const [writing, reading] of [
        [storage, other],
        [other, storage],
      ] as const) {
        // Twice, so that every cache is in use.
        const seen = async () => {
          const first = await ids(reading, await bob(reading), { limit: 20 });
          assert.deepEqual(await ids(reading, await bob(reading), { limit: 20 }), first);
          return first;
        };
        assert.deepEqual(await seen(), []);
        await share(writing, 'alice', 'bob', 'read');
        assert.deepEqual(await seen(), [1]);
        assert.equal(await reading.plants.delete(await bob(reading), 1), false);
        await share(writing, 'alice', 'bob', 'write');
        assert.equal((await bob(reading)).write.length, 2);
        const { store } = await alice(writing);
        await writing.shares.end(store, [{ owner: 'alice', user: 'bob' }]);
        assert.deepEqual(await seen(), []);
      }
    });

    it('limits how many shares an owner gives, but not changes to them', async (t) => {
      const storage = await open(t);
      await user(storage, 'alice');
      await run(addGivenShares(maxGivenShares - 1));
      assert.equal(await share(storage, 'alice', 'the last one', 'read'), true);
      await assert.rejects(share(storage, 'alice', 'one more', 'read'), {
        name: 'Problem',
        kind: 'too-many-shares',
      });
      assert.equal(await share(storage, 'alice', 'user 7', 'write'), false);
      const { store = 0 } = await storage.identity.findNames({ store: 'main', user: 'alice' });
      assert.equal((await storage.shares.of(store, 'alice')).given.length, maxGivenShares);
      await storage.shares.end(store, [{ owner: 'alice', user: 'user 3' }]);
      assert.equal(await share(storage, 'alice', 'one more', 'read'), true);
    });

    it('merges the plants of the owners who shared first, up to the limit', async (t) => {
      const storage = await open(t);
      const bob = await user(storage, 'bob');
      await run(addOwners(name, maxOwnersInReach + 1, 'bob'));
      const own = await create(storage, await bob(), { name: 'his', id: 2_000 });
      const inEffect = Array.from({ length: maxOwnersInReach - 1 }, (_, at) => {
        const id = at + 1;
        return { id, name: `n${id}`, tag: id % 2 === 1 ? 'odd' : '' };
      });
      const caller = await bob();
      assert.equal(caller.read.length, maxOwnersInReach);
      assert.deepEqual(await list(storage, caller, { limit: 2_000 }), [...inEffect, own]);
      assert.deepEqual(
        await list(storage, caller, { limit: 2_000, tag: 'odd' }),
        inEffect.filter(({ tag }) => tag === 'odd'),
      );
      const { received } = await storage.shares.of(caller.store, 'bob');
      assert.equal(received.length, maxOwnersInReach - 1);
      await storage.shares.end(caller.store, [{ owner: 'owner 5', user: 'bob' }]);
      const now = await ids(storage, await bob(), { limit: 2_000 });
      assert.ok(!now.includes(5));
      assert.ok(now.includes(maxOwnersInReach));
    });

    it('lists each plant that stays exactly once, while others come and go between the steps', async (t) => {
      const storage = await open(t);
      const owners: Caller[] = [];
      for (let at = 0; at < 60; at++) owners.push(await (await user(storage, `owner ${at}`))());
      // Dense at first, then with long stretches out of reach.
      const inReach = owners.slice(0, 20);
      const ownerOf = (id: number) => owners[id <= 300 || id % 50 === 0 ? id % 20 : id % 60];
      const stays = (id: number) => id % 10 === 0 || id % 7 === 3;
      const staying = Array.from({ length: 1_500 }, (_, at) => at + 1).filter(stays);
      const add = (id: number) => {
        const owner = ownerOf(id);
        assert.ok(owner);
        return create(storage, owner, { id, name: `n${id}`, tag: 't' });
      };
      await Array.fromAsync(inParallel(staying, 16, add)); // a busy machine would refuse to queue all of them
      const read = inReach.map((each) => each.user).toSorted((a, b) => a - b);
      const expected = staying.filter((id) => read.includes(ownerOf(id)?.user ?? 0));

      const stop = new AbortController();
      const change = async (first: number) => {
        for (let id = first; !stop.signal.aborted; id = (id * 7 + 1) % 1_500) {
          const owner = ownerOf(id);
          assert.ok(owner);
          if (id === 0 || stays(id)) continue;
          if (!(await storage.plants.delete(owner, id))) await add(id);
        }
      };
      const changes = Promise.all([change(1), change(2), change(4)]);
      try {
        for (const query of [{}, { tag: 't' }]) {
          for (const limit of [40, 400, 2_000]) {
            const found: number[] = [];
            for (let after: number | undefined = 0; after !== undefined;) {
              const range = { after, limit, fields: ['id'], ...query } as const;
              const page = await storage.plants.list({ ...owners[0], read } as Caller, range);
              const plants: Pick<Plant, 'id'>[] = JSON.parse(`[${page.json}]`);
              assert.ok(plants.length <= limit);
              found.push(...plants.map(({ id }) => id));
              after = page.next;
            }
            assert.deepEqual(
              found,
              [...new Set(found)].toSorted((a, b) => a - b),
            );
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

/** Creates a user with a token, and returns a function that identifies them. */
async function user(
  storage: Storage,
  name: string,
  role?: Role,
  store = 'main',
): Promise<(at?: Storage) => Promise<Caller>> {
  const named = { store, user: name, role };
  const { token } = await storage.identity.createToken({
    ...named,
    scopes: [],
    label: '',
    createdAtMs: 0,
  });
  return async (at = storage) => {
    const grant = await identify(at, token);
    assert.ok(grant);
    return grant.caller;
  };
}

async function share(
  storage: Storage,
  owner: string,
  other: string,
  access: ShareAccess,
  sinceMs = 0,
): Promise<boolean> {
  const { store = 0 } = await storage.identity.findNames({ store: 'main', user: owner });
  return storage.shares.set(store, { owner, user: other, access }, sinceMs);
}

async function list(
  storage: Storage,
  caller: Caller,
  query: Partial<PlantQuery> = {},
): Promise<Plant[]> {
  const { json } = await storage.plants.list(caller, {
    after: 0,
    limit: 1_000,
    fields: plantFields,
    ...query,
  });
  return JSON.parse(`[${json}]`);
}

async function ids(
  storage: Storage,
  caller: Caller,
  query: Partial<PlantQuery> = {},
): Promise<number[]> {
  return (await list(storage, caller, query)).map(({ id }) => id);
}
