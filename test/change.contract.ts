/**
 * What src/plants/plant-storage.ts and src/log/change-log.ts promise about changes to plants, conditions, restores and
 * the log, as tests that every storage runs.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { scopes, type Caller } from '../src/access/access.ts';
import { tokenHashBytes, tokenId } from '../src/access/token.ts';
import {
  binStart,
  maxRemovedChanges,
  type BinPage,
  type LoggedChange,
  type LogQuery,
  type PlantChange,
} from '../src/log/change-log.ts';
import { entityTag } from '../src/plants/entity-tag.ts';
import { isProblem } from '../src/problem.ts';
import type { Storage } from '../src/storage.ts';
import { openAgain, ownScene, type Scene } from './support/scene.ts';
import type { StorageName } from './support/storages.ts';
import { until } from './support/until.ts';

export function changeContract(engine: StorageName, scene: () => Scene): void {
  describe(`${engine}: updates`, () => {
    it('let one of 32 with the same condition through, from two processes', async () => {
      const { storage, other, caller } = scene();
      const processes = [storage, other];
      const alice = await caller('alice');
      for (const kind of ['update', 'delete'] as const) {
        const plant = await storage.plants.create(alice, { name: 'a' });
        const options = { condition: { match: [entityTag(plant)] } };
        const outcomes = await Promise.allSettled(
          Array.from({ length: 32 }, async (_, at) => {
            const { plants } = processes[at % 2] ?? storage;
            return kind === 'update'
              ? plants.update(alice, plant.id, { name: `n${at}` }, options)
              : plants.delete(alice, plant.id, options);
          }),
        );
        const done = outcomes.filter(({ status, ...rest }) => {
          return status === 'fulfilled' && 'value' in rest && rest.value !== undefined;
        });
        assert.equal(done.length, 1);
        const refused = outcomes.filter(
          (one) => one.status === 'rejected' && isProblem(one.reason, 'precondition-failed'),
        );
        assert.equal(refused.length, kind === 'update' ? 31 : 0);
        const history = await storage.log.history(alice, plant.id, 100);
        assert.equal(history?.length, 2);
      }
    });
  });

  describe(`${engine}: restores`, () => {
    it('restore nothing of a removed user, whoever has the name later', async () => {
      const { storage, caller } = scene();
      const maria = await caller('maria', 'manager');
      const alice = await caller('alice');
      await storage.plants.create(alice, { name: 'old', id: 1 });
      await storage.plants.delete(alice, 1);
      await remove(storage, alice);
      const again = await caller('alice');
      for (const who of [again, maria]) {
        assert.equal(await storage.plants.restore(who, 1), undefined);
        assert.equal(await storage.log.history(who, 1, 10), undefined);
      }
      await storage.plants.create(again, { name: 'new', id: 1 });
      await storage.plants.delete(again, 1);
      assert.equal((await storage.plants.restore(again, 1))?.name, 'new');
    });
  });

  describe(`${engine}: the bin`, () => {
    it('has a plant as long as nothing has happened to it since, and its owner is there', async () => {
      const { storage, caller, callers } = scene();
      const [alice, bob] = await callers('alice', 'bob');
      const maria = await caller('maria', 'manager');
      for (const id of [1, 2, 3]) {
        await storage.plants.create(alice, { name: `n${id}`, id });
        await storage.plants.delete(alice, id);
      }
      await storage.plants.restore(alice, 1);
      await storage.plants.create(bob, { name: 'his', id: 2 });
      assert.deepEqual(await idsInBin(storage, alice), [3]);
      await storage.plants.delete(alice, 1);
      await storage.plants.delete(bob, 2);
      assert.deepEqual(await idsInBin(storage, alice), [1, 3]);
      assert.deepEqual(await idsInBin(storage, maria), [2, 1, 3]);
      await remove(storage, alice);
      const again = await caller('alice');
      assert.deepEqual(await idsInBin(storage, again), []);
      assert.deepEqual(await idsInBin(storage, maria), [2]);
    });

    it('has nothing that was lost while there was no log', async (t) => {
      const { storage, database, caller } = scene();
      const unlogged = await openAgain(t, database, { keepChangesMs: 0 });
      const alice = await caller('alice');
      const { id } = await storage.plants.create(alice, { name: 'first' });
      await storage.plants.delete(alice, id);
      await unlogged.plants.create(alice, { name: 'second', id });
      assert.deepEqual(await idsInBin(storage, alice), []);
      await unlogged.plants.update(alice, id, { name: 'later' });
      await unlogged.plants.delete(alice, id);
      assert.deepEqual(await idsInBin(storage, alice), []);
      assert.equal(await storage.plants.restore(alice, id), undefined);
      assert.equal(await storage.log.history(alice, id, 10), undefined);
    });

    it('costs the same, however often a plant was deleted and restored', async () => {
      const { storage, caller } = scene();
      const alice = await caller('alice');
      await storage.plants.create(alice, { name: 'a', id: 1 });
      await storage.plants.create(alice, { name: 'b', id: 2 });
      await storage.plants.delete(alice, 2);
      const rounds = Array.from({ length: 1_100 }, async () => {
        const deleted = storage.plants.delete(alice, 1); // they are carried out in this order
        return Promise.all([deleted, storage.plants.restore(alice, 1)]);
      });
      await Promise.all(rounds);
      let steps = 0;
      const assertWanted = () => void steps++;
      const { plants } = await storage.log.deleted(alice, {
        after: binStart,
        limit: 2,
        assertWanted,
      });
      assert.deepEqual(
        plants.map(({ id }) => id),
        [2],
      );
      assert.equal(steps, 1);
    });

    it('is found behind any number of deletions that are not in it', async () => {
      const { storage, callers } = scene();
      const [alice, bob] = await callers('alice', 'bob');
      const ids = Array.from({ length: 1_200 }, (_, at) => at + 1);
      const isOfAlice = (id: number) => id % 30 === 1;
      const ofAlice = ids.filter(isOfAlice);
      await Promise.all(
        ids.map((id) => storage.plants.create(isOfAlice(id) ? alice : bob, { name: 'n', id })),
      );
      for (const who of [alice, bob]) {
        const all = ids.map((id) => storage.plants.delete(who, id));
        await Promise.all(all);
      }
      for (const id of ofAlice.slice(0, 30)) await storage.plants.restore(alice, id);
      const expected = ofAlice.slice(30).toReversed();
      for (const limit of [3, expected.length, 1_000]) {
        const found = await idsInBin(storage, alice, limit);
        assert.deepEqual(
          found.toSorted((a, b) => b - a),
          expected,
        );
      }
      assert.equal((await idsInBin(storage, bob)).length, ids.length - ofAlice.length);
    });
  });

  describe(`${engine}: the log`, () => {
    it('has the history of a plant since its creation, for whoever can read it', async () => {
      const { storage, store, caller, callers } = scene();
      const [alice, bob] = await callers('alice', 'bob');
      const maria = await caller('maria', 'manager');
      await storage.plants.create(bob, { name: 'secret', id: 1 });
      await storage.plants.update(bob, 1, { name: 'secrets' });
      await storage.plants.delete(bob, 1);
      await storage.plants.create(alice, { name: 'a', tag: 't', id: 1 });
      await storage.plants.update(maria, 1, { name: 'b' });
      await storage.plants.update(alice, 1, { name: 'b' }); // changes nothing
      await storage.plants.delete(alice, 1);
      const history = async (who: Caller, limit = 100) =>
        (await storage.log.history(who, 1, limit))?.map((change) => untimed(change));
      const before = { owner: 'alice', tag: 't' };
      const none = { owner: undefined, name: undefined, tag: undefined };
      const expected = [
        { event: 'deleted', user: 'alice', ...before, name: 'b' },
        { event: 'updated', user: 'maria', ...before, name: 'a' },
        { event: 'created', user: 'alice', ...none },
      ];
      assert.deepEqual(await history(alice), expected);
      assert.deepEqual(await history(maria), expected);
      assert.deepEqual(await history(alice, 2), expected.slice(0, 2));
      assert.equal(await history(bob), undefined);
      await storage.plants.restore(alice, 1);
      await storage.users.movePlants(alice, bob.user, 10);
      const moved = [
        { event: 'moved', user: undefined, ...before, name: 'b' },
        { event: 'restored', user: 'alice', ...none },
        ...expected,
      ];
      assert.deepEqual(await history(bob), moved);
      assert.equal(await history(alice), undefined);
      assert.equal(await storage.log.history(alice, 2, 10), undefined);
      const stranger = await caller('maria', 'manager', `${store} elsewhere`);
      assert.equal(await history(stranger), undefined);
    });

    it('has the history of a plant that is restored at the moment', async () => {
      const { storage, other, caller } = scene();
      const alice = await caller('alice');
      await storage.plants.create(alice, { name: 'a', id: 1 });
      const done = new AbortController();
      const changes = async () => {
        for (let round = 0; round < 50; round++) {
          await storage.plants.delete(alice, 1);
          await storage.plants.restore(alice, 1);
        }
        done.abort();
      };
      const reads = async () => {
        for (; !done.signal.aborted; await setImmediate()) {
          assert.ok((await other.log.history(alice, 1, 1)) !== undefined);
        }
      };
      await Promise.all([changes(), reads()]);
    });

    it('has every change in the order of their commits, with who made it and how', async () => {
      const { storage, store, caller, grant } = scene();
      const beforeMs = Date.now();
      const alice = await grant('alice');
      const { caller: who, tokenId: token } = alice;
      const bob = await caller('bob');
      const request = '01234567-89ab-4cde-8f01-23456789abcd';
      await storage.plants.create(who, { name: 'a', tag: 't', id: 5 }, { request });
      await storage.plants.update(who, 5, { tag: null }, { request });
      await storage.plants.delete(who, 5, { request });
      await storage.plants.restore(who, 5, { request });
      const share = { owner: 'alice', user: 'bob' };
      for (const access of ['read', 'read', 'write'] as const) {
        await storage.shares.set(who.store, { ...share, access }, 0, who, request);
      }
      await storage.shares.end(who.store, [share], who, request);
      const hash = randomBytes(tokenHashBytes);
      const own = { hash, scopes: ['plants:read'], label: '', createdAtMs: 1, salt: 'a' } as const;
      await storage.identity.createOwnToken(alice, { ...own, expiresAtMs: undefined }, request);
      const ownId = tokenId(hash, who.store);
      await storage.identity.revokeToken(ownId, 1, alice, request);
      await storage.identity.revokeToken(ownId, 1, alice, request);
      await storage.shares.set(who.store, { ...share, access: 'read' }, 0);
      await storage.users.endAccess(who, 1, 10);
      await storage.users.movePlants(who, bob.user, 10);
      await storage.users.remove(who, 1);
      for (const role of ['manager', 'manager', undefined] as const) {
        await caller('bob', role);
      }
      const all = await listAll(storage, { store });
      const plant = { plant: 5, owner: 'alice', name: 'a' };
      const shared = { owner: 'alice', name: 'bob' };
      const done = { user: 'alice', token, request };
      const allScopes = [...scopes].toSorted().join(' ');
      const expected = [
        { event: 'user-created', owner: 'alice', name: undefined, tag: 'member' },
        { event: 'token-created', owner: 'alice', name: token, tag: allScopes },
        { event: 'user-created', owner: 'bob', name: undefined, tag: 'member' },
        { event: 'token-created', owner: 'bob' },
        { event: 'created', ...done, plant: 5 },
        { event: 'updated', ...done, ...plant, tag: 't' },
        { event: 'deleted', ...done, ...plant, tag: '' },
        { event: 'restored', ...done, plant: 5 },
        { event: 'shared', ...done, ...shared, tag: 'read' },
        { event: 'share-changed', ...done, ...shared, tag: 'write' },
        { event: 'share-ended', ...done, ...shared, tag: 'write' },
        { event: 'token-created', ...done, owner: 'alice', name: ownId, tag: 'plants:read' },
        { event: 'token-revoked', ...done, owner: 'alice', name: ownId, tag: 'plants:read' },
        { event: 'shared', ...shared, tag: 'read' },
        { event: 'token-revoked', owner: 'alice', name: token, tag: allScopes },
        { event: 'share-ended', ...shared, tag: 'read' },
        { event: 'moved', ...plant, tag: '' },
        { event: 'user-removed', owner: 'alice' },
        { event: 'role-changed', owner: 'bob', name: undefined, tag: 'manager' },
        ...Array.from({ length: 3 }, () => ({ event: 'token-created', owner: 'bob' })),
      ];
      assert.deepEqual(
        all.map(({ event }) => event),
        expected.map(({ event }) => event),
      );
      for (const [at, change] of expected.entries()) {
        const logged = { ...all[at] };
        if (logged.tag?.includes(' ')) logged.tag = logged.tag.split(' ').toSorted().join(' ');
        assert.partialDeepStrictEqual(logged, change);
        if (!('user' in change)) {
          const { user, token: used, request: sent } = logged;
          assert.deepEqual([user, used, sent], [undefined, undefined, undefined], change.event);
        }
      }
      for (const { atMs } of all) assert.ok(atMs >= beforeMs && atMs <= Date.now());
      const positions = all.map(({ position }) => position);
      assert.deepEqual(
        positions,
        all.map((_, at) => at + 1),
      );
    });

    it('lists only what the query asks for, page by page', async () => {
      const { storage, store, caller, callers } = scene();
      const [alice, bob] = await callers('alice', 'bob');
      const stranger = await caller('alice', 'member', `${store} elsewhere`);
      for (let id = 1; id <= 10; id++) {
        await storage.plants.create(id % 2 === 0 ? alice : bob, { name: `n${id}`, id });
      }
      await storage.plants.create(stranger, { name: 'elsewhere', id: 1 });
      await storage.plants.delete(alice, 4);
      const ids = async (query: Omit<LogQuery, 'limit'>) =>
        (await listAll(storage, query)).map(({ event, plant = 0 }) => `${event} ${plant}`);
      const even = [2, 4, 6, 8, 10].map((id) => `created ${id}`);
      assert.deepEqual(await ids({ store, user: 'alice' }), [...even, 'deleted 4']);
      assert.deepEqual(await ids({ store, plant: 4 }), ['created 4', 'deleted 4']);
      assert.deepEqual(await ids({ store, plant: 4, user: 'bob' }), []);
      assert.deepEqual(await ids({ store, sinceMs: Date.now() + 60_000 }), []);
      assert.equal((await ids({ store, sinceMs: Date.now() - 60_000 })).length, 15);
      assert.deepEqual(await ids({ store: `${store} elsewhere` }), [
        'user-created 0',
        'token-created 0',
        'created 1',
      ]);
      assert.deepEqual(await ids({ store: 'nowhere' }), []);
      assert.deepEqual(await storage.log.list({ store: 'nowhere', limit: 5 }), {
        changes: [],
        next: undefined,
      });
    });

    it('shows nothing that is too old, even if nobody writes', async (t) => {
      const { storage, database, store, caller } = scene();
      const alice = await caller('alice');
      for (const id of [1, 2]) await storage.plants.create(alice, { name: 'a', id });
      await storage.plants.delete(alice, 1);
      const doneMs = Date.now();
      await until('it is a millisecond later', () => Date.now() > doneMs + 1);
      for (const keepChangesMs of [0, 1]) {
        const reading = await openAgain(t, database, { keepChangesMs });
        assert.equal(await reading.log.history(alice, 1, 10), undefined);
        assert.deepEqual(await reading.log.history(alice, 2, 10), []);
        assert.deepEqual(await idsInBin(reading, alice), []);
        assert.equal(await reading.plants.restore(alice, 1), undefined);
        assert.deepEqual(await listAll(reading, { store }), []);
        assert.deepEqual(await listAll(reading, { store, plant: 1 }), []);
      }
      const later = await openAgain(t, database, { keepChangesMs: 3_600_000 });
      assert.deepEqual(await idsInBin(later, alice), [1]);
      assert.equal((await later.plants.restore(alice, 1))?.name, 'a');
    });

    it('is empty without a time to keep changes, and nothing can be restored', async (t) => {
      const { storage: before, database, caller } = scene();
      const storage = await openAgain(t, database, { keepChangesMs: 0 });
      const alice = await caller('alice');
      const { id } = await storage.plants.create(alice, { name: 'a' });
      await storage.plants.update(alice, id, { name: 'b' });
      assert.deepEqual(await storage.log.history(alice, id, 10), []);
      await before.plants.delete(alice, id); // the log has this one
      const { plants } = storage;
      const together = [plants.restore(alice, id), plants.delete(alice, id)];
      assert.deepEqual(await Promise.all([...together, plants.restore(alice, id)]), [
        undefined,
        undefined,
        undefined,
      ]);
    });

    it('counts changes without a time to keep them, so that a copy in progress notices them', async (t) => {
      const { storage, database, store, token, caller } = scene();
      const unlogged = await openAgain(t, database, { keepChangesMs: 0 });
      const { store: number } = await caller('alice');
      const share = { owner: 'alice', user: 'bob', access: 'read' } as const;
      await unlogged.shares.set(number, share, 1);
      const bob = { store, user: 'bob', scopes, label: '', createdAtMs: 0 };
      await unlogged.identity.createToken(bob);
      await token('carol');
      const changes = await listAll(storage, { store });
      // Between them, a share was set, and a user and their token were created.
      const positions = changes.map(({ position }) => position);
      assert.deepEqual(positions, [1, 2, 6, 7]);
    });

    it('loses what is from before a time, in steps, in all stores', async (t) => {
      const { storage, store, caller } = await ownScene(t, engine);
      const stores = [store, 'other'];
      for (const [at, name] of stores.entries()) {
        const alice = await caller('alice', 'member', name);
        const plants = Array.from({ length: at === 0 ? 1_100 : 10 }, () => ({ name: 'n' }));
        await Promise.all(plants.map((plant) => storage.plants.create(alice, plant)));
      }
      const beforeMs = Date.now() + 1;
      await until('it is a millisecond later', () => Date.now() >= beforeMs);
      await caller('alice'); // adds a token to the log
      const left = async () => {
        const logs = stores.map((name) => listAll(storage, { store: name }, 1_000));
        return (await Promise.all(logs)).map(({ length }) => length);
      };
      const before = await left();
      let steps = 0;
      for (let next: number | undefined = 0; next !== undefined; steps++) {
        const [one = 0, two = 0] = await left();
        next = await storage.log.removeOld(beforeMs, next);
        const [oneNow = 0, twoNow = 0] = await left();
        assert.ok(one + two - oneNow - twoNow <= 2 * maxRemovedChanges);
      }
      assert.ok(steps >= 3, `${steps} steps`);
      assert.deepEqual(before, [1_103, 12]);
      assert.deepEqual(await left(), [1, 0]);
    });

    it('has a time at which a clock was right, and no earlier one replaces it', async (t) => {
      const { storage, other } = await ownScene(t, engine);
      const { confirmedMs: createdMs, aheadSinceMs } = await storage.log.readClock();
      assert.ok(Math.abs(Date.now() - createdMs) < 3_600_000, String(createdMs));
      assert.equal(aheadSinceMs, undefined);
      const later = { confirmedMs: createdMs + 2, aheadSinceMs: undefined };
      await storage.log.setClock(later);
      await storage.log.setClock({ confirmedMs: createdMs + 1, aheadSinceMs: 7 });
      assert.deepEqual(await other.log.readClock(), { ...later, aheadSinceMs: 7 });
      await other.log.setClock(later);
      assert.deepEqual(await storage.log.readClock(), later);
    });
  });
}

/** All pages. */
async function listAll(
  storage: Storage,
  query: Omit<LogQuery, 'limit'>,
  limit = 3,
): Promise<LoggedChange[]> {
  const changes: LoggedChange[] = [];
  let after: number | undefined;
  do {
    const page = await storage.log.list({ ...query, after, limit });
    assert.ok(page.changes.length <= limit);
    changes.push(...page.changes);
    after = page.next;
  } while (after !== undefined);
  return changes;
}

/** The ids of all pages. A page that is not the last one is full. */
async function idsInBin(storage: Storage, who: Caller, limit = 1_000): Promise<number[]> {
  const ids: number[] = [];
  let after: number | undefined = binStart;
  while (after !== undefined) {
    const page: BinPage = await storage.log.deleted(who, { after, limit });
    const isFull = page.plants.length === limit;
    assert.ok(page.next === undefined ? page.plants.length <= limit : isFull);
    ids.push(...page.plants.map(({ id }) => id));
    after = page.next;
  }
  return ids;
}

/** As an operator does it. The user has no plants. */
async function remove(storage: Storage, user: Caller): Promise<void> {
  while ((await storage.users.endAccess(user, 1, 10)) > 0);
  assert.ok(await storage.users.remove(user, 1));
}

function untimed({ event, user, owner, name, tag }: PlantChange): Omit<PlantChange, 'atMs'> {
  return { event, user, owner, name, tag };
}
