/**
 * What src/storage.ts promises, as tests that every storage runs.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { Caller, Grant, Role } from '../src/access/access.ts';
import { scopes, stateOf } from '../src/access/access.ts';
import { maxId } from '../src/plants/ids.ts';
import type { Plant } from '../src/plants/plant.ts';
import { defaultFields } from '../src/plants/lists.ts';
import type { PlantQuery } from '../src/plants/plant-storage.ts';
import type { TokenPosition } from '../src/access/identity-storage.ts';
import type { Storage, WriteSettings } from '../src/storage.ts';
import { credentialOf, hashToken, makeToken, storeOf } from '../src/access/token.ts';
import { create, find, plantJson, type StoredField } from './support/plain-plants.ts';
import { withIds } from './support/many-rows.ts';
import type { StorageName } from './support/storages.ts';
import { identify } from './support/tokens.ts';

export interface StorageUnderTest {
  name: StorageName;
  /** Opens an empty storage that is closed with the test. */
  open: (t: TestContext) => Promise<Storage>;
  /** A second opening of the storage that `open` made last, as another process would have it. */
  openAgain: (t: TestContext, settings?: WriteSettings) => Promise<Storage>;
  /** Runs a statement on it, as another program would. */
  run: (sql: string) => Promise<void>;
}

export function storageContract({ name, open, openAgain, run }: StorageUnderTest): void {
  describe(`${name}: plants`, () => {
    it('assigns the next id above every id that the store has ever had', async (t) => {
      const storage = await open(t);
      const alice = await caller(storage, 'alice');
      assert.deepEqual(await create(storage, alice, { name: 'a' }), plant(1, 'a'));
      assert.deepEqual(await create(storage, alice, { name: 'b', id: 7 }), plant(7, 'b'));
      assert.deepEqual(await create(storage, alice, { name: 'c' }), plant(8, 'c'));
      assert.equal(await storage.plants.delete(alice, 8), true);
      assert.equal((await create(storage, alice, { name: 'd' })).id, 9);
      assert.equal((await create(storage, alice, { name: 'e', id: 3 })).id, 3);
      assert.equal((await create(storage, alice, { name: 'f' })).id, 10);
    });

    it('refuses an id that any user of the store has, without a change', async (t) => {
      const storage = await open(t);
      const [alice, bob] = [await caller(storage, 'alice'), await caller(storage, 'bob')];
      await create(storage, alice, { name: 'first', id: 5 });
      await rejectsWith('id-taken', create(storage, bob, { name: 'second', id: 5 }));
      await rejectsWith('id-taken', create(storage, alice, { name: 'second', id: 5 }));
      assert.deepEqual(await find(storage, alice, 5), plant(5, 'first'));
      assert.equal((await create(storage, bob, { name: 'third' })).id, 6);
      await storage.plants.delete(alice, 5);
      assert.equal((await create(storage, bob, { name: 'second', id: 5 })).id, 5);
    });

    it('assigns random free ids after the largest one, and still accepts smaller ones', async (t) => {
      const storage = await open(t);
      const [alice, bob] = [await caller(storage, 'alice'), await caller(storage, 'bob')];
      await create(storage, alice, { name: 'last', id: maxId });
      const users = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? alice : bob));
      const created = await Promise.all([
        ...users.map((user) => create(storage, user, { name: 'more' })),
        create(storage, alice, { name: 'own', id: 1 }),
      ]);
      created.push(await create(storage, bob, { name: 'more' }));
      assert.equal(new Set(created.map(({ id }) => id)).size, 22);
      for (const one of created) assert.ok(one.id >= 1 && one.id < maxId, String(one.id));
      assert.ok(created.some(({ id }) => id > 2 ** 50));
      assert.equal(created[20]?.id, 1);
      for (const [at, one] of created.entries())
        assert.deepEqual(await find(storage, users[at] ?? (at === 20 ? alice : bob), one.id), one);
      assert.deepEqual(await find(storage, alice, maxId), plant(maxId, 'last'));
      assert.equal(await storage.plants.delete(alice, maxId), true);
      assert.notEqual((await create(storage, alice, { name: 'next' })).id, maxId);
      const [store] = await storage.users.listStores({ limit: 1 });
      assert.equal(store?.lastId, maxId);
    });

    it('assigns the last id to only one of several concurrent creates', async (t) => {
      const storage = await open(t);
      const alice = await caller(storage, 'alice');
      await create(storage, alice, { name: 'before', id: maxId - 1 });
      const names = ['a', 'b', 'c'];
      const asked = names.map((one) => create(storage, alice, { name: one }));
      const created = await Promise.all(asked);
      const last = created.filter(({ id }) => id === maxId);
      assert.equal(last.length, 1);
      const manager = await caller(storage, 'maria', 'manager');
      for (const who of [alice, manager]) {
        assert.deepEqual(await list(storage, who, { after: maxId - 1 }), last);
        assert.equal((await list(storage, who)).length, 4);
      }
    });

    it('accepts the largest limit', async (t) => {
      const storage = await open(t);
      const alice = await caller(storage, 'alice');
      const plants = [await create(storage, alice, { name: 'a' })];
      assert.deepEqual(await list(storage, alice, { limit: 2_147_483_647 }), plants);
    });

    it('preserves text code point by code point', async (t) => {
      const storage = await open(t);
      const alice = await caller(storage, 'alice');
      const texts = [
        ' a ',
        'é',
        'e\u0301',
        '𝒳',
        '\u{10FFFF}',
        '"\\/',
        '\u2028\uFEFF\u200B',
        "';--",
      ];
      for (const text of texts) {
        const { id } = await create(storage, alice, { name: text, tag: text });
        assert.deepEqual(await find(storage, alice, id), { id, name: text, tag: text });
        assert.deepEqual(await list(storage, alice, { after: id - 1, tag: text }), [
          { id, name: text, tag: text },
        ]);
      }
    });

    it('allows members to read and delete only their own plants', async (t) => {
      const storage = await open(t);
      const [alice, bob] = [await caller(storage, 'alice'), await caller(storage, 'bob')];
      await create(storage, alice, { name: 'hers', id: 1 });
      await create(storage, bob, { name: 'his', id: 2 });
      assert.deepEqual(await list(storage, alice), [plant(1, 'hers')]);
      assert.equal(await find(storage, alice, 2), undefined);
      assert.equal(await storage.plants.delete(alice, 2), false);
      assert.deepEqual(await list(storage, bob), [plant(2, 'his')]);
    });

    it('allows managers to read and delete every plant of their own store only', async (t) => {
      const storage = await open(t);
      const manager = await caller(storage, 'manager', 'manager');
      const alice = await caller(storage, 'alice');
      const stranger = await caller(storage, 'alice', 'member', 'elsewhere');
      await create(storage, alice, { name: 'hers', id: 1 });
      await create(storage, stranger, { name: 'elsewhere', id: 1 });
      await create(storage, stranger, { name: 'elsewhere', id: 2 });
      assert.deepEqual(await list(storage, manager), [plant(1, 'hers')]);
      assert.deepEqual(await find(storage, manager, 1), plant(1, 'hers'));
      assert.equal(await find(storage, manager, 2), undefined);
      assert.equal(await storage.plants.delete(manager, 2), false);
      assert.equal(await storage.plants.delete(manager, 1), true);
      assert.equal(await find(storage, alice, 1), undefined);
      assert.equal((await list(storage, stranger)).length, 2);
    });

    it('deletes a plant once, and removes it from every result', async (t) => {
      const storage = await open(t);
      const alice = await caller(storage, 'alice');
      await create(storage, alice, { name: 'a', tag: 't' });
      assert.equal(await storage.plants.delete(alice, 1), true);
      assert.equal(await storage.plants.delete(alice, 1), false);
      assert.equal(await find(storage, alice, 1), undefined);
      assert.deepEqual(await list(storage, alice), []);
      assert.deepEqual(await list(storage, alice, { tag: 't' }), []);
    });

    for (const role of ['member', 'manager'] as const) {
      it(`lists ranges by id and tag in ascending order for a ${role}`, async (t) => {
        const storage = await open(t);
        const alice = await caller(storage, 'alice', role);
        const all: Plant[] = [];
        for (const id of [40, 7, 300, 12, 2, 90]) {
          all.push(await create(storage, alice, { id, name: `n${id}`, tag: `t${id % 2}` }));
        }
        const sorted = all.toSorted((a, b) => a.id - b.id);
        const even = sorted.filter(({ tag }) => tag === 't0');
        assert.deepEqual(await list(storage, alice), sorted);
        assert.deepEqual(await list(storage, alice, { limit: 2 }), sorted.slice(0, 2));
        assert.deepEqual(await list(storage, alice, { after: 12 }), sorted.slice(3));
        assert.deepEqual(await list(storage, alice, { after: 13, limit: 1 }), sorted.slice(3, 4));
        assert.deepEqual(await list(storage, alice, { after: 300 }), []);
        assert.deepEqual(await list(storage, alice, { tag: 't0' }), even);
        assert.deepEqual(await list(storage, alice, { tag: 't0', after: 2, limit: 1 }), [even[1]]);
        assert.deepEqual(await list(storage, alice, { tag: 'T0' }), []);
        assert.deepEqual(await list(storage, alice, { tag: '' }), []);
      });
    }

    it('finds the plants with a tag or a text among many, and reports if more follow', async (t) => {
      const storage = await open(t);
      const [alice, bob] = [await caller(storage, 'alice'), await caller(storage, 'bob')];
      const ids = [1, 1_999, 2_000, 2_001, 5_000, 9_999, 10_000, 10_001, 20_500];
      const all = [...ids, 21_200, 21_600, 22_000];
      await run(`
        INSERT INTO plants (store, id, owner, tag, name) ${withIds(22_000)}
        SELECT store, id, CASE WHEN id > 21000 THEN ${bob.user} ELSE ${alice.user} END,
               CASE WHEN id IN (${all.join()}) THEN 'rare' ELSE '' END, 'a'
        FROM stores, ids`);
      for (const [who, found] of [
        [alice, ids],
        [reaching([alice, bob], alice), all],
        [await caller(storage, 'eve', 'manager'), all],
      ] as const) {
        const fromEach = found.map((_, at) => [at, 1] as const);
        for (const filter of [{ tag: 'rare' }, { q: 'RÁRE' }])
          for (const [at, limit] of [...fromEach, [0, found.length], [0, found.length + 1]]) {
            const after = found[at - 1] ?? 0;
            const page = await storage.plants.list(who, {
              after,
              limit,
              ...filter,
              fields: ['id'],
            });
            const expected = found.slice(at, at + limit);
            assert.deepEqual(page, {
              json: expected.map((id) => `{"id":${id}}`).join(),
              next: at + limit < found.length ? expected.at(-1) : undefined,
            });
          }
      }
      const query = { after: 0, limit: 100, tag: 'rare', fields: ['id'] } as const;
      const none = await storage.plants.list(alice, { ...query, tag: 'none' });
      assert.deepEqual(none, { json: '', next: undefined });
    });

    for (const role of ['member', 'manager'] as const) {
      it(`searches names and tags, whatever their case and accents, for a ${role}`, async (t) => {
        const storage = await open(t);
        const alice = await caller(storage, 'alice', role);
        const bob = await caller(storage, 'bob');
        const names = ['Łódź rose', 'Aloe', 'ROSE', 'Straße', '100% aloe_', '장미', 'İris'];
        for (const [at, one] of names.entries()) {
          const tag = at % 2 === 0 ? 'Blüte' : 'leaf';
          await storage.plants.create(alice, { id: at + 1, name: one, tag });
        }
        await storage.plants.create(bob, { id: 100, name: 'rose of bob' });
        const idsOf = async (query: Partial<PlantQuery>) =>
          (await list(storage, alice, query)).map(({ id }) => id);
        const bobs = role === 'manager' ? [100] : [];
        const searches: Record<string, number[]> = {
          rose: [1, 3, ...bobs],
          Rosé: [1, 3, ...bobs],
          lodz: [1],
          ALOE: [2, 5],
          strasse: [4],
          bluete: [],
          blute: [1, 3, 5, 7],
          LEAF: [2, 4, 6],
          '%': [5],
          _: [5],
          'a*e': [],
          장미: [6],
          장: [6],
          iris: [7],
          ŧ: [1, 2, 3, 4, 5, 6, 7].filter((id) => id % 2 === 1 || id === 4),
          'none of them': [],
        };
        for (const [q, expected] of Object.entries(searches)) {
          assert.deepEqual(await idsOf({ q }), expected, q);
        }
        assert.deepEqual(await idsOf({ q: 'rose', tag: 'Blüte' }), [1, 3]);
        assert.deepEqual(await idsOf({ q: 'aloe', tag: 'leaf' }), [2]);
        assert.deepEqual(await idsOf({ q: 'aloe', tag: 'blüte' }), []);
        assert.deepEqual(await idsOf({ q: 'blute', limit: 2 }), [1, 3]);
        assert.deepEqual(await idsOf({ q: 'blute', limit: 2, after: 3 }), [5, 7]);
        assert.deepEqual(await idsOf({ q: 'blute', after: 7 }), []);
      });
    }

    it('rejects an interrupted scan, which is no complete page', async (t) => {
      const storage = await open(t);
      const [alice, bob] = [await caller(storage, 'alice'), await caller(storage, 'bob')];
      await create(storage, alice, { name: 'a', tag: 't' });
      const query = { after: 0, limit: 1, tag: 't', fields: ['id'] } as const;
      const assertWanted = () => {
        throw new Error('the client has disconnected');
      };
      for (const who of [alice, reaching([alice, bob], alice)]) {
        const page = storage.plants.list(who, { ...query, assertWanted });
        await assert.rejects(page, { message: 'the client has disconnected' });
        assert.equal((await storage.plants.list(who, query)).json, '{"id":1}');
      }
    });

    it('returns the requested fields in their order, in the bytes of a single plant', async (t) => {
      const storage = await open(t);
      const alice = await caller(storage, 'alice');
      const first = await create(storage, alice, {
        name: '"quoted" \\ é 𝒳 \u2028',
        tag: '/',
      });
      const second = await create(storage, alice, { name: 'b' });
      const orders: StoredField[][] = [
        ['id'],
        ['name', 'tag'],
        ['tag', 'name'],
        ['id', 'name', 'tag'],
        ['tag', 'id', 'name'],
      ];
      for (const fields of orders) {
        const page = await storage.plants.list(alice, { after: 0, limit: 10, fields });
        const expected = [first, second].map((one) => plantJson(one, fields)).join();
        assert.deepEqual(page, { json: expected, next: undefined });
      }
      const page = await storage.plants.list(alice, { after: 0, limit: 1, fields: ['id'] });
      assert.deepEqual(page, { json: '{"id":1}', next: 1 });
      const none = await storage.plants.list(alice, { after: 9, limit: 10, fields: defaultFields });
      assert.deepEqual(none, { json: '', next: undefined });
    });

    it('stores the outcome of each of many concurrent writes', async (t) => {
      const storage = await open(t);
      const alice = await caller(storage, 'alice');
      const wanted = Array.from({ length: 200 }, (_, at) => (at % 4 === 0 ? { id: 1_000 } : {}));
      const outcomes = await Promise.allSettled(
        wanted.map((one) => create(storage, alice, { name: 'n', ...one })),
      );
      const ids = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : []));
      assert.equal(ids.length, 151, 'all without an id, and one with it');
      assert.equal(new Set(ids).size, 151);
      assert.deepEqual(
        (await list(storage, alice)).map(({ id }) => id),
        ids.toSorted((a, b) => a - b),
      );
    });

    it('shows a completed write to another connection at once, durably', async (t) => {
      const storage = await open(t);
      const alice = await caller(storage, 'alice');
      const other = await openAgain(t);
      await create(storage, alice, { name: 'a' });
      assert.deepEqual(await find(other, alice, 1), plant(1, 'a'));
      await other.plants.delete(alice, 1);
      assert.equal(await find(storage, alice, 1), undefined);
      assert.equal((await create(other, alice, { name: 'b' })).id, 2);
      assert.equal((await create(storage, alice, { name: 'c' })).id, 3);
    });
  });

  describe(`${name}: access to several owners`, () => {
    it('lists the plants of all owners by id, page by page', async (t) => {
      const storage = await open(t);
      const owners = await Promise.all(
        Array.from({ length: 101 }, (_, at) => caller(storage, `owner ${at}`)),
      );
      const [first] = owners as [Caller, ...Caller[]];
      const plants = Array.from({ length: 600 }, (_, at) => {
        const id = 3 * at + 1;
        // Runs of one owner, mixed owners of whom some have none, and long stretches out of reach.
        const [inRuns, mixed] = [Math.floor(at / 20), ((id * 7_919) % 97) + (id % 5)];
        const owner = owners[at < 200 ? inRuns : at < 400 ? mixed : 40 + (at % 60)] ?? first;
        return { owner, plant: { id, name: `n${id}`, tag: `t${at % 3}` } };
      });
      await Promise.all(plants.map((one) => create(storage, one.owner, one.plant)));

      for (const count of [0, 2, 10, 20, 45, 100]) {
        const reached = owners.slice(0, count);
        const who = reaching(reached, first);
        for (const tag of [undefined, 't1', '']) {
          const expected = plants
            .filter(({ owner }) => reached.includes(owner))
            .map(({ plant: one }) => one)
            .filter((one) => (tag ?? one.tag) === one.tag);
          for (const limit of [count > 10 ? 30 : 1, 7, expected.length, 1_000]) {
            if (limit === 0) continue;
            const pages: string[] = [];
            for (let next: number | undefined = 0; next !== undefined;) {
              const query: PlantQuery = { after: next, limit, tag, fields: ['id', 'tag'] };
              const page = await storage.plants.list(who, query);
              pages.push(page.json);
              ({ next } = page);
            }
            const shown = expected.map((one) => plantJson(one, ['id', 'tag'])).join();
            assert.equal(pages.join(), shown, `${count} owners, limit ${limit}`);
            assert.equal(pages.length, Math.max(1, Math.ceil(expected.length / limit)));
          }
        }
      }
    });

    it('applies to finding and deleting separately', async (t) => {
      const storage = await open(t);
      const [carol, bob, alice] = [
        await caller(storage, 'carol'),
        await caller(storage, 'bob'),
        await caller(storage, 'alice'), // last: a caller whose grants may have changed is identified again
      ];
      const plants = [
        await create(storage, alice, { name: 'a' }),
        await create(storage, bob, { name: 'b' }),
        await create(storage, carol, { name: 'c' }),
      ];
      const both = reaching([alice, bob], alice);
      const reader = { ...both, write: alice.write };
      assert.deepEqual(await find(storage, both, 2), plants[1]);
      assert.equal(await find(storage, both, 3), undefined);
      assert.equal(await find(storage, both, 4), undefined);
      assert.equal(await storage.plants.delete(both, 3), false);
      assert.equal(await storage.plants.delete(both, 4), false);
      assert.deepEqual(await find(storage, reader, 2), plants[1]);
      await assert.rejects(storage.plants.delete(reader, 2), { kind: 'plant-read-only' });

      const deletes = [1, 2, 3, 2].map((id) => storage.plants.delete(both, id));
      assert.deepEqual(await Promise.all(deletes), [true, true, false, false]);
      assert.deepEqual(await list(storage, both), []);
      assert.deepEqual(await list(storage, bob), []);
      assert.deepEqual(await list(storage, carol), [plants[2]]);
      const own = await create(storage, both, { name: 'd' });
      assert.deepEqual(await list(storage, alice), [own]);
    });

    it('shows the changes of any owner at once', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const { token } = await storage.identity.createToken(newToken);
      const credential = credentialOf(token);
      const [bob, carol] = [await caller(storage, 'bob'), await caller(storage, 'carol')];
      for (const [writing, reading] of [
        [storage, storage],
        [storage, other],
        [other, storage],
      ] as const) {
        const page = async (owners: readonly Caller[]) => {
          const alice = (await reading.identity.identify(credential))?.caller;
          assert.ok(alice);
          return list(reading, reaching([alice, ...owners], alice), { limit: 20 });
        };
        const [before, beforeWider] = [await page([bob]), await page([bob, carol])];
        assert.deepEqual(await page([bob]), before);
        const bobs = await create(writing, bob, { name: 'b' });
        assert.deepEqual(await page([bob]), [...before, bobs]);
        const carols = await create(writing, carol, { name: 'c' });
        assert.deepEqual(await page([bob]), [...before, bobs]);
        assert.deepEqual(await page([bob, carol]), [...beforeWider, bobs, carols]);
        await writing.plants.delete(bob, bobs.id);
        assert.deepEqual(await page([bob]), before);
        assert.deepEqual(await page([bob, carol]), [...beforeWider, carols]);
      }
    });
  });

  describe(`${name}: tokens`, () => {
    it('finds the grant of a token, and none for an unknown token', async (t) => {
      const storage = await open(t);
      const { token, id } = await storage.identity.createToken({
        ...newToken,
        scopes: ['plants:read'],
        expiresAtMs: 9_000,
      });
      const credential = credentialOf(token);
      const grant = await storage.identity.identify(credential);
      assert.ok(grant);
      assert.equal(roleOf(grant.caller), 'member');
      assert.deepEqual(grant.caller.scopes, new Set(['plants:read']));
      assert.deepEqual([grant.expiresAtMs, grant.revokedAtMs], [9_000, undefined]);
      const { tokenId, userName, storeName, role } = grant;
      assert.deepEqual([tokenId, userName, storeName, role], [id, 'alice', 'main', 'member']);
      const { store } = grant.caller;
      assert.equal(storeOf(token), store, 'the token names its store');
      for (const unknown of [
        credentialOf(makeToken(store)),
        credentialOf(makeToken(store + 1)),
        credentialOf(makeToken(2 ** 53 - 1)),
      ]) {
        assert.equal(await storage.identity.identify(unknown), undefined);
      }
    });

    it('gives one user of a store the same identity in every token', async (t) => {
      const storage = await open(t);
      const [first, second] = [await caller(storage, 'alice'), await caller(storage, 'alice')];
      const bob = await caller(storage, 'bob');
      const elsewhere = await caller(storage, 'alice', undefined, 'elsewhere');
      assert.deepEqual({ ...first, identified: undefined }, { ...second, identified: undefined });
      assert.equal(first.store, bob.store);
      assert.notEqual(first.user, bob.user);
      assert.notEqual(first.store, elsewhere.store);
    });

    it('changes the role of the user in that store only if a role is given', async (t) => {
      const storage = await open(t);
      const { token } = await storage.identity.createToken(newToken);
      const credential = credentialOf(token);
      const roleNow = async () => roleOf((await storage.identity.identify(credential))?.caller);
      assert.equal(await roleNow(), 'member');
      await caller(storage, 'alice', 'manager', 'elsewhere');
      assert.equal(await roleNow(), 'member');
      await caller(storage, 'alice', 'manager');
      assert.equal(await roleNow(), 'manager');
      await caller(storage, 'alice');
      assert.equal(await roleNow(), 'manager');
      await caller(storage, 'alice', 'member');
      assert.equal(await roleNow(), 'member');
    });

    it('shows later changes to a cached caller, even from another connection', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const { token, id } = await storage.identity.createToken(newToken);
      const credential = credentialOf(token);
      for (const [writing, reading] of [
        [storage, storage],
        [storage, other],
        [other, storage],
      ] as const) {
        // Read twice before and twice after, so that every cache is in use.
        const page = async () => {
          const who = (await reading.identity.identify(credential))?.caller;
          assert.ok(who);
          return list(reading, who, { limit: 20 });
        };
        const before = await page();
        assert.deepEqual(await page(), before);
        const alice = (await writing.identity.identify(credential))?.caller;
        assert.ok(alice);
        const added = await create(writing, alice, { name: 'new' });
        assert.deepEqual(await page(), [...before, added]);
        await writing.plants.delete(alice, added.id);
        assert.deepEqual(await page(), before);

        // Also for a cached caller, on the connection of the write.
        await list(writing, alice, { limit: 20 });
        const own = await create(writing, alice, { name: 'own' });
        assert.deepEqual(await list(writing, alice, { limit: 20 }), [...before, own]);
        await writing.plants.delete(alice, own.id);
        assert.deepEqual(await list(writing, alice, { limit: 20 }), before);

        const role = async () => roleOf((await reading.identity.identify(credential))?.caller);
        assert.equal(await role(), 'member');
        await caller(writing, 'alice', 'manager');
        assert.equal(await role(), 'manager');
        await caller(writing, 'alice', 'member');
        assert.equal(await role(), 'member');
      }
      await other.identity.revokeToken(id, 5_000);
      assert.equal((await other.identity.identify(credential))?.revokedAtMs, 5_000);
      assert.equal((await storage.identity.identify(credential))?.revokedAtMs, 5_000);
    });

    it('returns the pages of each user, role, field and limit', async (t) => {
      const storage = await open(t);
      const [alice, bob] = [await caller(storage, 'alice'), await caller(storage, 'bob')];
      const manager = await caller(storage, 'eve', 'manager');
      const [first, second] = [
        await create(storage, alice, { name: 'a' }),
        await create(storage, bob, { name: 'b' }),
      ];
      for (let round = 0; round < 2; round++) {
        assert.deepEqual(await list(storage, alice), [first]);
        assert.deepEqual(await list(storage, bob), [second]);
        assert.deepEqual(await list(storage, manager, { limit: 20 }), [first, second]);
        assert.deepEqual(await list(storage, manager, { limit: 1 }), [first]);
        assert.deepEqual(await list(storage, manager, { limit: 20, tag: 'none' }), []);
        const page = { after: 0, limit: 20 };
        const ids = await storage.plants.list(manager, { ...page, fields: ['id'] });
        assert.equal(ids.json, '{"id":1},{"id":2}');
        const names = await storage.plants.list(manager, { ...page, fields: ['name'] });
        assert.equal(names.json, '{"name":"a"},{"name":"b"}');
      }
    });

    it('never returns a cached grant that is not current, even if it has passed that on', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const { token, id } = await storage.identity.createToken(newToken);
      const credential = credentialOf(token);
      let passedOn: Grant | undefined;
      const again = () => storage.identity.identify(credential, (cached) => (passedOn = cached));
      const first = await again();
      assert.equal(passedOn, undefined);
      assert.equal(await again(), first);
      if (passedOn !== undefined) assert.equal(passedOn, first);
      const [passedBefore] = [passedOn];
      await caller(other, 'alice', 'manager');
      const second = await again();
      assert.equal(passedOn, passedBefore);
      assert.equal(second?.caller.read, 'all');
      assert.notEqual(second, first);
      await other.identity.revokeToken(id, 5_000);
      assert.equal((await again())?.revokedAtMs, 5_000);
    });

    it('revokes by id, once, for every connection', async (t) => {
      const storage = await open(t);
      const { token, id } = await storage.identity.createToken(newToken);
      const later = await storage.identity.createToken(newToken);
      const other = await openAgain(t);
      const revoked = await storage.identity.revokeToken(id, 5_000);
      assert.deepEqual([revoked?.id, revoked?.revokedAtMs], [id, 5_000]);
      assert.equal((await storage.identity.revokeToken(id, 6_000))?.revokedAtMs, 5_000);
      assert.equal((await identify(other, token))?.revokedAtMs, 5_000);
      const [route = '', hex = ''] = later.id.split('-');
      for (const unknown of [
        '0'.repeat(16),
        'x',
        '',
        hex,
        later.id.slice(1),
        `${later.id}0`,
        `${route}-${'0'.repeat(16)}`,
        `${'z'.repeat(9)}-${hex}`,
      ]) {
        assert.equal(await storage.identity.revokeToken(unknown, 1), undefined, unknown);
      }
      assert.equal((await identify(other, later.token))?.revokedAtMs, undefined);
    });

    it('finds a store and its users from their first token on', async (t) => {
      const storage = await open(t);
      const [main, elsewhere] = ['main', 'elsewhere'];
      const findUser = async (storeName: string, user: string) => {
        const {
          store,
          user: number,
          role,
        } = await storage.identity.findNames({ store: storeName, user });
        return { store: typeof store, user: typeof number, role };
      };
      assert.deepEqual(await findUser(main, 'alice'), {
        store: 'undefined',
        user: 'undefined',
        role: undefined,
      });
      await storage.identity.createToken(newToken);
      assert.deepEqual(await findUser(main, 'alice'), {
        store: 'number',
        user: 'number',
        role: 'member',
      });
      assert.deepEqual(await findUser(main, 'Alice'), {
        store: 'number',
        user: 'undefined',
        role: undefined,
      });
      assert.deepEqual(await findUser(elsewhere, 'alice'), {
        store: 'undefined',
        user: 'undefined',
        role: undefined,
      });
      await storage.identity.createToken({ ...newToken, store: elsewhere });
      await storage.identity.revokeToken(
        (await storage.identity.listTokens({ limit: 1 }))[0]?.id ?? '',
        1,
      );
      assert.deepEqual(await findUser(main, 'alice'), {
        store: 'number',
        user: 'number',
        role: 'member',
      });
      assert.deepEqual(await findUser(elsewhere, 'alice'), {
        store: 'number',
        user: 'number',
        role: 'member',
      });
    });

    it('lists the tokens of one store or of all stores by store and hash, page by page', async (t) => {
      const storage = await open(t);
      const tokens: string[] = [];
      for (let at = 0; at < 5; at++) {
        const store = at < 3 ? 'main' : 'elsewhere';
        const { token } = await storage.identity.createToken({
          ...newToken,
          store,
          label: `no. ${at}`,
        });
        tokens.push(token);
      }
      const positions = tokens.map((token) => {
        return { store: storeOf(token), hash: hashToken(token) };
      });
      const inOrder = positions.toSorted(
        (a, b) => a.store - b.store || Buffer.compare(a.hash, b.hash),
      );
      const seen: TokenPosition[] = [];
      for (;;) {
        const page = await storage.identity.listTokens({ after: seen.at(-1), limit: 2 });
        if (page.length === 0) break;
        seen.push(...page.map(({ position }) => position));
      }
      assert.deepEqual(seen.map(plain), inOrder.map(plain));
      const store = storeOf(tokens[0] ?? '');
      const listed = await storage.identity.listTokens({ store: 'main', limit: 10 });
      assert.deepEqual(
        listed.map(({ position }) => plain(position)),
        inOrder.filter((each) => each.store === store).map(plain),
      );
      const { id: _, label: __, position: ___, ...first } = listed[0] ?? {};
      assert.deepEqual(first, record);
      assert.deepEqual(
        await storage.identity.listTokens({
          store: 'main',
          after: listed.at(-2)?.position,
          limit: 10,
        }),
        listed.slice(-1),
      );
      assert.deepEqual(await storage.identity.listTokens({ store: 'nowhere', limit: 10 }), []);
    });

    it('ends a grant at its exact millisecond, or earlier if it is revoked', () => {
      assert.equal(stateOf({ expiresAtMs: 10, revokedAtMs: undefined }, 9), 'active');
      assert.equal(stateOf({ expiresAtMs: 10, revokedAtMs: undefined }, 10), 'expired');
      assert.equal(stateOf({ expiresAtMs: 10, revokedAtMs: 5 }, 6), 'revoked');
      assert.equal(stateOf({ expiresAtMs: undefined, revokedAtMs: undefined }, maxId), 'active');
    });
  });

  it(`${name}: reports that it is available`, async (t) => {
    const storage = await open(t);
    assert.equal(await storage.check(), undefined);
  });
}

const plant = (id: number, name: string): Plant => ({ id, name, tag: '' });

const newToken = {
  store: 'main',
  user: 'alice',
  scopes,
  label: 'note',
  createdAtMs: 1_000,
};

/** A position that can be compared: each engine has another class of bytes. */
function plain({ store, hash }: TokenPosition): string {
  return `${store} ${Buffer.from(hash).toString('hex')}`;
}

const record = {
  store: 'main',
  user: 'alice',
  role: 'member',
  scopes: [...scopes],
  createdAtMs: 1_000,
  expiresAtMs: undefined,
  revokedAtMs: undefined,
  lastUsedAtMs: undefined,
};

async function caller(
  storage: Storage,
  user: string,
  role?: Role,
  store = 'main',
): Promise<Caller> {
  return (await grantOf(storage, user, role, store)).caller;
}

async function grantOf(
  storage: Storage,
  user: string,
  role?: Role,
  store = 'main',
): Promise<Grant> {
  const { token } = await storage.identity.createToken({ ...newToken, user, role, store });
  const grant = await identify(storage, token);
  assert.ok(grant);
  return grant;
}

function roleOf(who: Caller | undefined): Role {
  assert.ok(who);
  assert.deepEqual(who.read, who.write);
  if (who.read === 'all') return 'manager';
  assert.deepEqual(who.read, [who.user]);
  return 'member';
}

/** A caller who reaches what all these own. */
function reaching(owners: readonly Caller[], who: Caller): Caller {
  const reach = owners.map(({ user }) => user).toSorted((a, b) => a - b);
  return { ...who, read: reach, write: reach };
}

async function list(
  storage: Storage,
  who: Caller,
  query: Partial<PlantQuery> = {},
): Promise<Plant[]> {
  const fields: StoredField[] = ['id', 'name', 'tag'];
  const page = await storage.plants.list(who, { after: 0, limit: 1_000, fields, ...query });
  const plants: Plant[] = JSON.parse(`[${page.json}]`);
  if (page.next !== undefined) assert.equal(page.next, plants.at(-1)?.id);
  return plants;
}

async function rejectsWith(kind: string, promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, { name: 'Problem', kind });
}
