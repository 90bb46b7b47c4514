/**
 * The quotas of plants (src/plants/quota.ts), as tests that every storage runs: they are exact, whatever happens at the
 * same time.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { Caller } from '../src/access/access.ts';
import type { Quotas } from '../src/plants/quota.ts';
import { Problem } from '../src/problem.ts';
import type { Storage } from '../src/storage.ts';
import { seededRandom } from './support/random.ts';
import { firstSeed } from './support/rounds.ts';
import { idsOf, openAgain, type Scene } from './support/scene.ts';
import type { StorageName } from './support/storages.ts';

const userFull = (quota: number) =>
  `A user of this service can own at most ${quota} plant${quota === 1 ? '' : 's'}. Delete plants that you own, or ask the operator for a higher limit.`;
const storeFull = (quota: number) =>
  `A store of this service can have at most ${quota} plant${quota === 1 ? '' : 's'}. Delete plants of the store, or ask the operator for a higher limit.`;

export function quotaContract(engine: StorageName, scene: () => Scene): void {
  describe(`${engine}: quotas`, () => {
    for (const scope of ['user', 'store'] as const) {
      it(`refuse no create while a ${scope} has room, and are never exceeded`, async (t) => {
        t.diagnostic(`PLANT_STORE_TEST_SEED=${firstSeed}`);
        const random = seededRandom(firstSeed);
        const below = (limit: number) => Math.floor(random() * limit);
        const { database, caller, callers, share } = scene();
        const quota = 10;
        const quotas = scope === 'user' ? { perUser: quota } : { perStore: quota };
        const storages = [await open(t, database, quotas), await open(t, database, quotas)];
        const pick = <T>(all: readonly T[]): T => all[below(all.length)] as T; // none is empty
        const [alice, bob] = await callers('alice', 'bob');
        await share('alice', 'bob', 'write');
        const manager = await caller('manager', 'manager');
        const helper = await caller('bob');
        assert.deepEqual(helper.write, [alice.user, bob.user]);
        // Those whose plants count, and one who can read exactly these.
        const owners = scope === 'user' ? [alice] : [alice, bob, helper];
        const reader = scope === 'user' ? alice : manager;
        const full = scope === 'user' ? userFull(quota) : storeFull(quota);

        for (let round = 0; round < 40; round++) {
          const before = await idsOf(pick(storages), reader);
          const wanted = below(16);
          const ended = before.filter(() => random() < 0.4);
          const creates = Array.from({ length: wanted }, () =>
            create(pick(storages), pick(owners)),
          );
          const deletes = ended.map((id) => {
            const by = pick([reader, scope === 'user' ? helper : manager, manager]);
            return pick(storages).plants.delete(by, id);
          });
          const created = (await Promise.all(creates)).filter(isId).length;
          assert.ok((await Promise.all(deletes)).every(Boolean));
          if (scope === 'user') await create(pick(storages), bob);
          const room = quota - before.length;
          const [least, most] = [Math.min(wanted, room), Math.min(wanted, room + ended.length)];
          assert.ok(created >= least && created <= most, `${created} in ${least} to ${most}`);
          const now = await idsOf(pick(storages), reader);
          assert.equal(now.length, before.length + created - ended.length);
        }
        const left = quota - (await idsOf(pick(storages), reader)).length;
        for (let at = 0; at < left; at++) assert.ok(isId(await create(pick(storages), alice)));
        assert.equal(await create(pick(storages), alice), full);
      });
    }

    it('count what processes without quotas, or with other ones, write', async (t) => {
      for (const quotas of [{}, { perUser: 9 }]) {
        const { database, caller } = scene();
        const [free, alice] = [await open(t, database, quotas), await caller('alice')];
        const first = await Promise.all([1, 2, 3].map(() => create(free, alice)));
        assert.deepEqual(new Set(first), new Set([1, 2, 3]));
        assert.ok(await free.plants.delete(alice, 1));
        const limited = await open(t, database, { perStore: 4 });
        assert.equal(await create(limited, alice), 4);
        assert.equal(await create(free, alice), 5);
        assert.equal(await create(limited, alice), storeFull(4));
        assert.equal(await create(free, alice), 6);
        assert.ok(await limited.plants.delete(alice, 2));
        assert.equal(await create(limited, alice), storeFull(4));
        assert.ok(await free.plants.delete(alice, 3));
        assert.equal(await create(limited, alice), 7);
        assert.equal(await create(limited, alice), storeFull(4));
      }
    });

    it('count plants that are moved to another user at once', async (t) => {
      const { database, callers } = scene();
      const storage = await open(t, database, { perUser: 2 });
      const [alice, bob] = await callers('alice', 'bob');
      for (const id of [1, 2]) assert.equal(await create(storage, alice), id);
      assert.equal(await create(storage, bob), 3);
      assert.equal(await storage.users.movePlants(alice, bob.user, 1), 1);
      assert.equal(await create(storage, bob), userFull(2));
      assert.equal(await create(storage, alice), 4);
      assert.equal(await create(storage, alice), userFull(2));
    });

    it('keep all plants if they become lower, and count plants that are older', async (t) => {
      const { storage: before, database, caller } = scene();
      const alice = await caller('alice');
      for (let id = 1; id <= 5; id++) assert.equal(await create(before, alice), id);
      const storage = await open(t, database, { perUser: 3 });
      for (const id of [1, 2]) {
        assert.equal(await create(storage, alice), userFull(3));
        assert.ok(await storage.plants.delete(alice, id));
      }
      assert.equal(await create(storage, alice), userFull(3));
      assert.deepEqual(await idsOf(storage, alice), [3, 4, 5]);
      assert.ok(await storage.plants.delete(alice, 3));
      assert.equal(await create(storage, alice), 6);
      const after = await open(t, database, { perUser: 4 });
      assert.equal(await create(after, alice), 7);
      assert.equal(await create(after, alice), userFull(4));
    });

    it('count nothing of a transaction that is rolled back', async (t) => {
      const { database, caller } = scene();
      const quotas = { perUser: 3 };
      const [one, other] = [await open(t, database, quotas), await open(t, database, quotas)];
      const alice = await caller('alice');
      for (const id of [1, 2]) assert.equal(await create(one, alice), id);
      const nul = 'No storage accepts this: \u0000';
      await Promise.allSettled([
        one.plants.create(alice, { name: 'Fern' }),
        one.plants.create({ ...alice, user: 99 }, { name: nul }),
      ]);
      assert.ok(await other.plants.delete(alice, 1));
      const room = 3 - (await idsOf(other, alice)).length;
      for (let at = 0; at < room; at++) assert.ok(isId(await create(one, alice)));
      assert.equal(await create(one, alice), userFull(3));
    });
  });
}

async function open(t: TestContext, database: Scene['database'], quotas: Partial<Quotas>) {
  const all = { perUser: undefined, perStore: undefined, ...quotas };
  return openAgain(t, database, { quotas: all });
}

/** The id of the plant, or why it was refused. */
async function outcomeOf(
  change: Promise<{ id: number } | undefined>,
): Promise<number | string | undefined> {
  try {
    return (await change)?.id;
  } catch (error) {
    assert.ok(error instanceof Problem);
    return error.kind === 'quota-exceeded' ? error.detail : error.kind;
  }
}

async function create({ plants }: Storage, owner: Caller, id?: number): Promise<number | string> {
  const outcome = await outcomeOf(plants.create(owner, { name: 'Fern', ...(id && { id }) }));
  return outcome ?? assert.fail();
}

const isId = (outcome: number | string) => typeof outcome === 'number';
