/**
 * The quotas of plants, on every storage: exact, whatever happens at the same time.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Caller, Role } from '../src/access/access.ts';
import type { Plant } from '../src/plants/plant.ts';
import { Problem } from '../src/problem.ts';
import type { Quotas } from '../src/plants/quota.ts';
import type { Storage } from '../src/storage.ts';
import { addToken } from './support/app.ts';
import { seededRandom } from './support/random.ts';
import { it, testDatabase, type TestDatabase } from './support/storages.ts';
import { identify } from './support/tokens.ts';

const unlimited: Quotas = { perUser: undefined, perStore: undefined };

async function open(t: TestContext, database: TestDatabase, quotas?: Partial<Quotas>) {
  const storage = await database.open({ quotas: quotas && { ...unlimited, ...quotas } });
  t.after(() => storage[Symbol.asyncDispose]());
  return storage;
}

async function caller(storage: Storage, user: string, role: Role = 'member'): Promise<Caller> {
  const token = await addToken(storage, user, { role });
  const grant = await identify(storage, token);
  assert.ok(grant);
  return grant.caller;
}

/** The id of the plant, or why it was refused. */
async function create(storage: Storage, owner: Caller, id?: number): Promise<number | string> {
  try {
    return (await storage.plants.create(owner, { name: 'Fern', ...(id && { id }) })).id;
  } catch (error) {
    assert.ok(error instanceof Problem);
    return error.kind === 'quota-exceeded' ? error.detail : error.kind;
  }
}

async function idsOf(storage: Storage, who: Caller): Promise<number[]> {
  const query = { after: 0, limit: 1_000, fields: ['id'] } as const;
  const { json } = await storage.plants.list(who, query);
  const plants: Plant[] = JSON.parse(`[${json}]`);
  return plants.map(({ id }) => id);
}

const isCreated = (outcome: number | string) => typeof outcome === 'number';

const userFull = (quota: number) =>
  `A user of this service can own at most ${quota} plant${quota === 1 ? '' : 's'}. Delete plants that you own, or ask the operator for a higher limit.`;
const storeFull = (quota: number) =>
  `A store of this service can have at most ${quota} plant${quota === 1 ? '' : 's'}. Delete plants of the store, or ask the operator for a higher limit.`;

it('a user owns at most as many plants as the quota; each deleted plant makes room', async (t) => {
  const storage = await open(t, await testDatabase(t), { perUser: 2 });
  const [alice, bob] = [await caller(storage, 'alice'), await caller(storage, 'bob')];
  assert.equal(await create(storage, alice), 1);
  assert.equal(await create(storage, alice, 7), 7);
  assert.equal(await create(storage, alice), userFull(2));
  assert.equal(await create(storage, alice, 9), userFull(2));
  assert.equal(await create(storage, bob), 8);
  assert.ok(await storage.plants.delete(alice, 1));
  assert.equal(await create(storage, alice, 1), 1);
  assert.equal(await create(storage, alice), userFull(2));
  assert.deepEqual(await idsOf(storage, alice), [1, 7]);
});

it('a store has at most as many plants as the quota, whoever owns them', async (t) => {
  const storage = await open(t, await testDatabase(t), { perUser: 2, perStore: 3 });
  const [alice, bob] = [await caller(storage, 'alice'), await caller(storage, 'bob')];
  for (const id of [1, 2]) assert.equal(await create(storage, alice), id);
  assert.equal(await create(storage, bob), 3);
  assert.equal(await create(storage, bob), storeFull(3));
  assert.equal(await create(storage, alice), userFull(2));
  const other = await addToken(storage, 'alice', { store: 'other' });
  const grant = await identify(storage, other);
  assert.ok(grant && isCreated(await create(storage, grant.caller)));
  assert.ok(await storage.plants.delete(alice, 1));
  assert.equal(await create(storage, bob), 4);
});

it('creates of several processes fill a quota exactly', async (t) => {
  const database = await testDatabase(t);
  const quotas = { perUser: 20, perStore: 50 };
  const storages = [await open(t, database, quotas), await open(t, database, quotas)];
  const [first] = storages as [Storage];
  const users: Caller[] = [];
  for (const name of ['alice', 'bob', 'carol']) users.push(await caller(first, name));
  const [alice] = users as [Caller];
  for (const id of [1, 2, 3]) assert.equal(await create(first, alice, id), id);

  const asked = Array.from({ length: 64 }, (_, at) => {
    const storage = storages[at % 2] as Storage;
    const id = at % 4 === 0 ? 1 + (at % 3) : at % 4 === 1 ? 1_000 + at : undefined;
    return Promise.all(users.map((user, of) => create(storage, user, id && id + of * 100)));
  });
  const outcomes = await Promise.all(asked);
  const created = users.map((_, of) => outcomes.map((each) => each[of] ?? '').filter(isCreated));
  const manager = await caller(first, 'manager', 'manager');
  const stored = await idsOf(first, manager);
  assert.equal(stored.length, 50);
  assert.deepEqual(
    [1, 2, 3, ...created.flat()].toSorted((a, b) => a - b),
    stored,
  );
  const counts = created.map(({ length }) => length);
  assert.ok((counts[0] ?? 0) <= 17 && counts.every((count) => count <= 20), counts.join());
  const others = new Set(outcomes.flat().filter((outcome) => !isCreated(outcome)));
  for (const reason of others)
    assert.ok(['id-taken', userFull(20), storeFull(50)].includes(reason));
  assert.ok(others.has('id-taken'));
});

for (const scope of ['user', 'store'] as const) {
  it(`no create is refused while a ${scope} has room, and none exceeds its quota`, async (t) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    t.diagnostic(`seed ${seed}`);
    const random = seededRandom(seed);
    const below = (limit: number) => Math.floor(random() * limit);
    const database = await testDatabase(t);
    const quota = 10;
    const quotas = scope === 'user' ? { perUser: quota } : { perStore: quota };
    const storages = [await open(t, database, quotas), await open(t, database, quotas)];
    const pick = () => storages[below(2)] as Storage;
    const [alice, bob] = [await caller(pick(), 'alice'), await caller(pick(), 'bob')];
    await pick().shares.set(alice.store, { owner: 'alice', user: 'bob', access: 'write' }, 0);
    const manager = await caller(pick(), 'manager', 'manager');
    const helper = await caller(pick(), 'bob');
    assert.deepEqual(helper.write, [alice.user, bob.user]);
    // Those whose plants count, and one who can read exactly these.
    const [owners, reader] = scope === 'user' ? [[alice], alice] : [[alice, bob, helper], manager];
    const full = scope === 'user' ? userFull(quota) : storeFull(quota);

    for (let round = 0; round < 60; round++) {
      const before = await idsOf(pick(), reader);
      const wanted = below(16);
      const ended = before.filter(() => random() < 0.4);
      const owner = () => owners[below(owners.length)] as Caller;
      const creates = Array.from({ length: wanted }, () => create(pick(), owner()));
      const deletes = ended.map((id) => {
        const by = [reader, scope === 'user' ? helper : manager, manager][below(3)] as Caller;
        return pick().plants.delete(by, id);
      });
      const created = (await Promise.all(creates)).filter(isCreated).length;
      assert.ok((await Promise.all(deletes)).every(Boolean));
      if (scope === 'user') await create(pick(), bob);
      const room = quota - before.length;
      const [least, most] = [Math.min(wanted, room), Math.min(wanted, room + ended.length)];
      assert.ok(created >= least && created <= most, `${created} in ${least} to ${most}`);
      assert.equal((await idsOf(pick(), reader)).length, before.length + created - ended.length);
    }
    const left = quota - (await idsOf(pick(), reader)).length;
    for (let at = 0; at < left; at++) assert.ok(isCreated(await create(pick(), alice)));
    assert.equal(await create(pick(), alice), full);
  });
}

it('a process without quotas does not disturb those with quotas', async (t) => {
  const database = await testDatabase(t);
  const [limited, free] = [await open(t, database, { perStore: 4 }), await open(t, database)];
  const alice = await caller(free, 'alice');
  assert.equal(await create(limited, alice), 1);
  for (const id of [2, 3]) assert.equal(await create(free, alice), id);
  assert.equal(await create(limited, alice), 4);
  assert.equal(await create(limited, alice), storeFull(4));
  assert.equal(await create(free, alice), 5);
  assert.ok(await limited.plants.delete(alice, 1));
  assert.equal(await create(limited, alice), storeFull(4));
  assert.ok(await free.plants.delete(alice, 2));
  assert.equal(await create(limited, alice), 6);
  assert.equal(await create(limited, alice), storeFull(4));
});

it('plants that are moved to another user count for that user at once', async (t) => {
  const storage = await open(t, await testDatabase(t), { perUser: 2 });
  const [alice, bob] = [await caller(storage, 'alice'), await caller(storage, 'bob')];
  for (const id of [1, 2]) assert.equal(await create(storage, alice), id);
  assert.equal(await create(storage, bob), 3);
  assert.equal(await storage.users.movePlants(alice, bob.user, 1), 1);
  assert.equal(await create(storage, bob), userFull(2));
  assert.equal(await create(storage, alice), 4);
  assert.equal(await create(storage, alice), userFull(2));
});

it('a lower quota keeps all plants; it applies to plants that are older than it', async (t) => {
  const database = await testDatabase(t);
  const before = await open(t, database);
  const alice = await caller(before, 'alice');
  for (let id = 1; id <= 5; id++) assert.equal(await create(before, alice), id);
  await before[Symbol.asyncDispose]();
  const storage = await open(t, database, { perUser: 3 });
  for (const id of [1, 2]) {
    assert.equal(await create(storage, alice), userFull(3));
    assert.ok(await storage.plants.delete(alice, id));
  }
  assert.equal(await create(storage, alice), userFull(3));
  assert.deepEqual(await idsOf(storage, alice), [3, 4, 5]);
  assert.ok(await storage.plants.delete(alice, 3));
  assert.equal(await create(storage, alice), 6);
  await storage[Symbol.asyncDispose]();
  const after = await open(t, database, { perUser: 4 });
  assert.equal(await create(after, alice), 7);
  assert.equal(await create(after, alice), userFull(4));
});

it('changes of one group have the outcomes of the same changes one by one', async (t) => {
  const database = await testDatabase(t);
  const before = await open(t, database);
  const alice = await caller(before, 'alice');
  const maria = await caller(before, 'maria', 'manager');
  for (const id of [1, 2]) assert.equal(await create(before, alice, id), id);
  for (const [perUser, restored] of [
    [1, userFull(1)],
    [2, 1],
  ] as const) {
    const storage = await open(t, database, { perUser });
    const restore = storage.plants.restore.bind(storage.plants, maria, 1);
    const outcome = () =>
      restore().then(
        (plant) => plant?.id,
        ({ detail }: Problem) => detail,
      );
    assert.deepEqual(await Promise.all([storage.plants.delete(maria, 1), outcome()]), [
      true,
      restored,
    ]);
    if (restored !== 1) await before.plants.restore(maria, 1);
  }
});

it('a transaction that is rolled back uses no room', async (t) => {
  const database = await testDatabase(t);
  const [one, other] = [
    await open(t, database, { perUser: 3 }),
    await open(t, database, { perUser: 3 }),
  ];
  const alice = await caller(one, 'alice');
  for (const id of [1, 2]) assert.equal(await create(one, alice), id);
  const nul = 'No storage accepts this: \u0000';
  await Promise.allSettled([
    one.plants.create(alice, { name: 'Fern' }),
    one.plants.create({ ...alice, user: 99 }, { name: nul }),
  ]);
  assert.ok(await other.plants.delete(alice, 1));
  const room = 3 - (await idsOf(other, alice)).length;
  for (let at = 0; at < room; at++) assert.ok(isCreated(await create(one, alice)));
  assert.equal(await create(one, alice), userFull(3));
});

it('a quota of the store counts what was written without it', async (t) => {
  const database = await testDatabase(t);
  for (const quotas of [undefined, { perUser: 5 }]) {
    const before = await open(t, database, quotas);
    const alice = await caller(before, 'alice');
    const ids = await Promise.all([1, 2, 3].map(() => create(before, alice)));
    for (const id of ids)
      assert.ok(typeof id === 'number' && (await before.plants.delete(alice, id)));
    assert.ok(isCreated(await create(before, alice)));
    await before[Symbol.asyncDispose]();
  }
  const storage = await open(t, database, { perStore: 2 });
  assert.equal(await create(storage, await caller(storage, 'alice')), storeFull(2));
});
