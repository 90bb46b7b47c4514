/**
 * What src/plants/plant-storage.ts and src/access/identity-storage.ts promise about plants, lists and tokens, as tests that
 * every storage runs.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  scopes,
  stateOf,
  type Caller,
  type Grant,
  type ReadAccess,
  type Role,
} from '../src/access/access.ts';
import { credentialOf, makeToken, storeOf } from '../src/access/token.ts';
import { maxId } from '../src/plants/ids.ts';
import type { Plant } from '../src/plants/plant.ts';
import type { PlantCursor, PlantQuery } from '../src/plants/plant-storage.ts';
import type { Storage } from '../src/storage.ts';
import { withIds } from './support/many-rows.ts';
import { create, find } from './support/plain-plants.ts';
import { addRows, rowsOf } from './support/rows.ts';
import { idsOf, listOf, ownScene, rejectsWith, type Scene } from './support/scene.ts';
import type { StorageName } from './support/storages.ts';
import { identify } from './support/tokens.ts';

export function storageContract(engine: StorageName, scene: () => Scene): void {
  describe(`${engine}: plants`, () => {
    it('assigns random free ids after the largest one, and still accepts smaller ones', async () => {
      const { storage, callers, store } = scene();
      const [alice, bob] = await callers('alice', 'bob');
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
      assert.ok(await storage.plants.delete(alice, maxId));
      assert.notEqual((await create(storage, alice, { name: 'next' })).id, maxId);
      const stores = await storage.users.listStores({ limit: 1_000 });
      assert.equal(stores.find((one) => one.store === store)?.lastId, maxId);
    });

    it('assigns the last id to only one of several concurrent creates', async () => {
      const { storage, caller } = scene();
      const [alice, manager] = [await caller('alice'), await caller('maria', 'manager')];
      await create(storage, alice, { name: 'before', id: maxId - 1 });
      const asked = ['a', 'b', 'c'].map((name) => create(storage, alice, { name }));
      const last = (await Promise.all(asked)).filter(({ id }) => id === maxId);
      assert.equal(last.length, 1);
      for (const who of [alice, manager]) {
        assert.deepEqual(await listOf(storage, who, { after: maxId - 1 }), last);
        assert.equal((await listOf(storage, who)).length, 4);
      }
    });

    it('creates one plant for a key of a user, from any process', async () => {
      const { storage, other, callers } = scene();
      const [alice, bob] = await callers('alice', 'bob');
      const keyed = ({ plants }: Storage, who: Caller, name = 'a') =>
        plants.create(who, { name }, { key: 'key' });
      const created = await Promise.all([storage, other, storage].map((at) => keyed(at, alice)));
      assert.equal(created.filter(({ isReplay }) => isReplay).length, 2);
      for (const { id, name } of created) assert.deepEqual([id, name], [1, 'a']);
      await rejectsWith('idempotency-key-reused', keyed(other, alice, 'b'));
      assert.equal((await keyed(other, bob, 'b')).id, 2);
      await storage.plants.delete(alice, 1);
      assert.equal((await keyed(other, alice)).isReplay, true);
      assert.deepEqual(await listOf(storage, alice), []);
    });

    it('stores the outcome of each of many concurrent writes', async () => {
      const { storage, caller } = scene();
      const alice = await caller('alice');
      const wanted = Array.from({ length: 200 }, (_, at) => (at % 4 === 0 ? { id: 1_000 } : {}));
      const outcomes = await Promise.allSettled(
        wanted.map((one) => create(storage, alice, { name: 'n', ...one })),
      );
      const ids = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : []));
      assert.equal(ids.length, 151, 'all without an id, and one with it');
      assert.equal(new Set(ids).size, 151);
      assert.deepEqual(await idsOf(storage, alice), ids.toSorted(byNumber));
    });

    it('shows a completed write to another connection at once, durably', async () => {
      const { storage, other, caller } = scene();
      const alice = await caller('alice');
      await create(storage, alice, { name: 'a' });
      assert.deepEqual(await find(other, alice, 1), plant(1, 'a'));
      await other.plants.update(alice, 1, { name: 'new' });
      assert.deepEqual(await find(storage, alice, 1), plant(1, 'new'));
      await other.plants.delete(alice, 1);
      assert.equal(await find(storage, alice, 1), undefined);
      assert.equal((await create(other, alice, { name: 'b' })).id, 2);
      assert.equal((await create(storage, alice, { name: 'c' })).id, 3);
    });
  });

  describe(`${engine}: lists`, () => {
    it('find the plants with a tag or a text among many, and report if more follow', async (t) => {
      const { storage, database, callers, caller } = await ownScene(t, engine);
      const [alice, bob] = await callers('alice', 'bob');
      const ids = [1, 1_999, 2_000, 2_001, 5_000, 9_999, 10_000, 10_001, 20_500];
      const all = [...ids, 21_200, 21_600, 22_000];
      await database.run(`
        INSERT INTO plants (store, id, owner, tag, name) ${withIds(22_000)}
        SELECT store, id, CASE WHEN id > 21000 THEN ${bob.user} ELSE ${alice.user} END,
               CASE WHEN id IN (${all.join()}) THEN 'rare' ELSE '' END, 'a'
        FROM stores, ids`);
      for (const [who, found] of [
        [alice, ids],
        [reaching([alice, bob], alice), all],
        [await caller('eve', 'manager'), all],
      ] as const) {
        const fromEach = found.map((_, at) => [at, 1] as const);
        // Each search folds many names.
        const fromSome = fromEach.filter(([at]) => at % 4 === 3);
        for (const [filter, from] of [
          [{ tag: 'rare' }, fromEach],
          [{ q: 'RÁRE' }, fromSome],
        ] as const)
          for (const [at, limit] of [...from, [0, found.length], [0, found.length + 1]] as const) {
            const query = { after: found[at - 1] ?? 0, limit, ...filter, fields: ['id'] } as const;
            const expected = found.slice(at, at + limit);
            assert.deepEqual(await storage.plants.list(who, query), {
              json: expected.map((id) => `{"id":${id}}`).join(),
              next: at + limit < found.length ? expected.at(-1) : undefined,
            });
          }
      }
      const query = { after: 0, limit: 100, tag: 'none', fields: ['id'] } as const;
      assert.deepEqual(await storage.plants.list(alice, query), { json: '', next: undefined });
    });

    it('are complete for many owners, however their plants are distributed', async (t) => {
      const { storage, database } = await ownScene(t, engine);
      const owners = Array.from({ length: 100 }, (_, at) => at + 1);
      const stranger = owners.length + 1;
      // Longer parts out of reach than a step of either engine, few plants of many owners, and many of one owner.
      const ownerOf = (id: number) => {
        if (id <= 300 || (id > 8_000 && id <= 8_500)) return owners[id % owners.length] ?? 0;
        if (id > 10_000 && id <= 11_500) return 1;
        return id % 400 === 0 ? (owners[(id / 400) % owners.length] ?? 0) : stranger;
      };
      const tagOf = (id: number) => (id % 2 === 0 ? 'even' : '');
      const ids = Array.from({ length: 20_000 }, (_, at) => at + 1);
      const plants = ids.map((id) => {
        return { id, owner: ownerOf(id), name: `plant ${id}`, tag: tagOf(id) };
      });
      await addRows(database.url, rowsOf([{ store: 1, plants }], stranger));
      for (const count of [0, 3, 20, 100]) {
        const read = owners.slice(0, count);
        const caller: ReadAccess = { store: 1, user: 1, read, write: [1], scopes: new Set() };
        const filters = [{}, { tag: 'even', q: 'plant' }, { tag: 'even' }, { q: 'ÉVEN' }];
        for (const filter of count === 3 ? filters : filters.slice(0, 2)) {
          const isFound = (id: number) => Object.keys(filter).length === 0 || id % 2 === 0;
          const expected = ids.filter((id) => ownerOf(id) <= count && isFound(id));
          const shown = `${count} owners, ${JSON.stringify(filter)}, limit `;
          for (const limit of [count > 3 ? 200 : 7, expected.length, 1_000]) {
            if (limit === 0) continue;
            const pages = await pagesOf(storage, caller, { limit, ...filter });
            const all = expected.map((id) => `{"id":${id},"tag":"${tagOf(id)}"}`).join();
            assert.equal(pages.join(), all, shown + limit);
            assert.equal(pages.length, Math.max(1, Math.ceil(expected.length / limit)));
          }
        }
      }
    });

    it('reject an interrupted scan, which is no complete page', async () => {
      const { storage, callers } = scene();
      const [alice, bob] = await callers('alice', 'bob');
      await create(storage, alice, { name: 'a', tag: 't' });
      const query = { after: 0, limit: 1, tag: 't', fields: ['id'] } as const;
      const assertWanted = () => {
        throw new Error('the client has disconnected');
      };
      for (const who of [alice, reaching([alice, bob], alice)]) {
        for (const scan of [
          storage.plants.list(who, { ...query, assertWanted }),
          storage.plants.list(who, { ...query, sort: 'name', assertWanted }),
          storage.plants.count(who, { assertWanted }),
        ])
          await assert.rejects(scan, { message: 'the client has disconnected' });
        assert.equal((await storage.plants.list(who, query)).json, '{"id":1}');
      }
    });
  });

  describe(`${engine}: tokens`, () => {
    it('have a grant, whose user is the same in each token of that name and store', async () => {
      const { storage, store, token, caller } = scene();
      const { token: text, id } = await token('alice', {
        scopes: ['plants:read'],
        expiresAtMs: 9_000,
      });
      const grant = await identify(storage, text);
      assert.ok(grant);
      const { caller: first, tokenId, userName, storeName, role, expiresAtMs, revokedAtMs } = grant;
      assert.equal(roleOf(first), 'member');
      assert.deepEqual(first.scopes, new Set(['plants:read']));
      assert.deepEqual([expiresAtMs, revokedAtMs], [9_000, undefined]);
      assert.deepEqual([tokenId, userName, storeName, role], [id, 'alice', store, 'member']);
      assert.equal(storeOf(text), first.store, 'the token names its store');
      for (const route of [first.store, first.store + 1, 2 ** 53 - 1])
        assert.equal(await identify(storage, makeToken(route)), undefined);

      const unscoped = { identified: undefined, scopes: undefined };
      const [again, bob] = [await caller('alice'), await caller('bob')];
      const elsewhere = await caller('alice', undefined, `${store} elsewhere`);
      assert.deepEqual({ ...first, ...unscoped }, { ...again, ...unscoped });
      assert.equal(first.store, bob.store);
      assert.notEqual(first.user, bob.user);
      assert.notEqual(first.store, elsewhere.store);
    });

    it('change the role of the user in that store only if a role is given', async () => {
      const { storage, other, store, token, caller } = scene();
      const { caller: now } = await token('alice');
      const elsewhere = `${store} elsewhere`;
      for (const [role, of, expected] of [
        [undefined, store, 'member'],
        ['manager', elsewhere, 'member'],
        ['manager', store, 'manager'],
        [undefined, store, 'manager'],
        ['member', store, 'member'],
      ] as const) {
        await caller('alice', role, of);
        for (const at of [other, storage, storage])
          assert.equal(roleOf(await now(at)), expected, of);
      }
    });

    it('never have a known grant that is not current, even after a wait', async () => {
      const { storage, other, token } = scene();
      const { token: text, id } = await token('alice');
      const credential = credentialOf(text);
      let waits = 0;
      const again = (known?: Grant) =>
        storage.identity.identify(credential, known, () => void waits++);
      const first = await again();
      assert.equal(waits, 0);
      assert.equal(await again(first), first);
      const waitsBefore = waits;
      const alice = { user: 'alice', store: first?.storeName ?? '', scopes, label: '' };
      await other.identity.createToken({ ...alice, role: 'manager', createdAtMs: 1 });
      const second = await again(first);
      assert.equal(waits, 2 * waitsBefore);
      assert.equal(second?.caller.read, 'all');
      assert.notEqual(second, first);
      await other.identity.revokeToken(id, 5_000);
      assert.equal((await again(second))?.revokedAtMs, 5_000);
    });

    it('are revoked by id, once, for every connection', async () => {
      const { storage, other, token } = scene();
      const [{ token: text, id }, later] = [await token('alice'), await token('alice')];
      for (const at of [storage, other])
        assert.equal((await identify(at, text))?.revokedAtMs, undefined);
      const revoked = await storage.identity.revokeToken(id, 5_000);
      assert.deepEqual([revoked?.id, revoked?.revokedAtMs], [id, 5_000]);
      assert.equal((await other.identity.revokeToken(id, 6_000))?.revokedAtMs, 5_000);
      for (const at of [storage, other])
        assert.equal((await identify(at, text))?.revokedAtMs, 5_000);
      const [route = '', hex = ''] = later.id.split('-');
      const none = '0'.repeat(16);
      const parts = [none, 'x', '', hex, later.id.slice(1), `${later.id}0`];
      for (const unknown of [...parts, `${route}-${none}`, `${'z'.repeat(9)}-${hex}`])
        assert.equal(await storage.identity.revokeToken(unknown, 1), undefined, unknown);
      assert.equal((await identify(other, later.token))?.revokedAtMs, undefined);
    });

    it('create their store and user, which stay when they are revoked', async () => {
      const { storage, store, token } = scene();
      const assertFound = async (name: string, user: string, expected: readonly unknown[]) => {
        const found = await storage.users.find(name, user);
        assert.deepEqual([typeof found.store, typeof found.user?.user, found.user?.role], expected);
        assert.deepEqual(await storage.users.find(name), { store: found.store, user: undefined });
      };
      for (const name of [store, `${store} elsewhere`]) {
        await assertFound(name, 'alice', ['undefined', 'undefined', undefined]);
        const { id } = await token('alice', { store: name });
        for (let time = 0; time < 2; time++) {
          await assertFound(name, 'alice', ['number', 'number', 'member']);
          await storage.identity.revokeToken(id, 1);
        }
        await assertFound(name, 'Alice', ['number', 'undefined', undefined]);
      }
    });

    it('are listed by store and id, page by page', async (t) => {
      const { storage, store: name, token } = await ownScene(t, engine);
      const ids: string[] = [];
      for (let at = 0; at < 5; at++) {
        const of = at < 3 ? name : 'elsewhere';
        const label = `no. ${at}`;
        ids.push((await token('alice', { store: of, label, createdAtMs: 1_000 })).id);
      }
      const { store = 0 } = await storage.users.find(name);
      const listed = await storage.identity.listTokens({ store, limit: 10 });
      assert.deepEqual(
        listed.map(({ id }) => id),
        ids.slice(0, 3).toSorted(),
      );
      const { id, label: _, ...first } = listed[0] ?? {};
      assert.deepEqual(first, {
        store: name,
        user: 'alice',
        role: 'member',
        scopes: [...scopes],
        createdAtMs: 1_000,
        expiresAtMs: undefined,
        revokedAtMs: undefined,
        lastUsedAtMs: undefined,
        renewableUntilMs: undefined,
        uses: undefined,
      });
      const next = { store, after: id, limit: 1 };
      assert.deepEqual(await storage.identity.listTokens(next), listed.slice(1, 2));
    });

    it('end at their exact millisecond, or earlier if they are revoked', async () => {
      assert.equal(stateOf({ expiresAtMs: 10, revokedAtMs: undefined }, 9), 'active');
      assert.equal(stateOf({ expiresAtMs: 10, revokedAtMs: undefined }, 10), 'expired');
      assert.equal(stateOf({ expiresAtMs: 10, revokedAtMs: 5 }, 6), 'revoked');
      assert.equal(stateOf({ expiresAtMs: undefined, revokedAtMs: undefined }, maxId), 'active');
      assert.equal(await scene().storage.check(), undefined);
    });
  });
}

const byNumber = (a: number, b: number) => a - b;
const plant = (id: number, name: string): Plant => ({ id, name, tag: '' });

function roleOf(who: Caller): Role {
  assert.deepEqual(who.read, who.write);
  if (who.read === 'all') return 'manager';
  assert.deepEqual(who.read, [who.user]);
  return 'member';
}

/** A caller who reaches what all these own. */
function reaching(owners: readonly Caller[], who: Caller): Caller {
  const reach = owners.map(({ user }) => user).toSorted(byNumber);
  return { ...who, read: reach, write: reach };
}

/** The JSON of all pages. */
async function pagesOf(
  { plants }: Storage,
  who: ReadAccess,
  query: Omit<PlantQuery, 'after' | 'fields'>,
): Promise<string[]> {
  const pages: string[] = [];
  for (let after: PlantCursor | undefined = 0; after !== undefined;) {
    const page = await plants.list(who, { ...query, after, fields: ['id', 'tag'] });
    pages.push(page.json);
    after = page.next;
  }
  return pages;
}
