/**
 * Changes to many stores at the same time share transactions, and one store in trouble does not harm the others.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { Client } from 'pg';
import type { Caller } from '../../src/access/access.ts';
import type { Plant } from '../../src/plants/plant.ts';
import { Problem } from '../../src/problem.ts';
import type { Storage, WriteSettings } from '../../src/storage.ts';
import { addToken } from '../support/app.ts';
import { commitsOf } from '../support/commits.ts';
import { query } from '../support/postgres.ts';
import { Proxy } from '../support/proxy.ts';
import { shared } from '../support/shared.ts';
import { openPostgres, testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';
import { identify } from '../support/tokens.ts';

const stores = 50;
/** Of several transactions. A busy machine could not write many more in time. */
const manyStores = 500;
/** Locks of several stores: more than there are transactions at a time. */
const lockedStores = 6;
/** A lock is waited for 2 seconds. A store that is not locked waits for a small part of that. */
const lockWaitMs = 1_900;
/** More bytes than the changes of the cut stores send and receive. */
const cutStores = 10;
const changeBytes = 12_000;
const cuts = 16;

/** A database in which each test has stores of its own. */
const world = shared(async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  const storage = await openPostgres(url);
  t.after(() => storage[Symbol.asyncDispose]());
  const caller = (await identify(storage, await addToken(storage, 'alice')))?.caller;
  assert.ok(caller);
  let last = caller.store;
  /** A caller in each of so many new stores, whose grants have never changed. */
  const addStores = async (count: number): Promise<Caller[]> => {
    const first = last + 1;
    last += count;
    await query(
      url,
      `INSERT INTO plant_store.stores (store, name)
       SELECT at, 'store ' || at FROM generate_series(${first}, ${last}) AS at`,
    );
    const [, ...identified] = caller.identified;
    return Array.from({ length: count }, (_, at) => ({
      ...caller,
      store: first + at,
      identified: [0, ...identified],
    }));
  };
  return { url, storage, addStores };
});

/** The storage of another process. */
async function openAgain(t: TestContext, settings: WriteSettings = {}): Promise<Storage> {
  const storage = await openPostgres(world().url, { create: true, ...settings });
  t.after(() => storage[Symbol.asyncDispose]());
  return storage;
}

/** The id of the plant, or the kind of problem. */
async function create(storage: Storage, caller: Caller): Promise<number | string> {
  try {
    return (await storage.plants.create(caller, { name: 'Fern' })).id;
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    return error.kind;
  }
}

async function idsOf(storage: Storage, caller: Caller): Promise<number[]> {
  const page = { after: 0, limit: 1_000, fields: ['id'] } as const;
  const { json } = await storage.plants.list(caller, page);
  const plants: Plant[] = JSON.parse(`[${json}]`);
  return plants.map(({ id }) => id);
}

/** A session in a transaction. */
async function transactionOn(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on('error', () => {}); // a failed test drops the database meanwhile
  await client.connect();
  await client.query('BEGIN');
  return client;
}

/** Locks the rows of stores until it is released. */
async function lock(callers: readonly Caller[]) {
  const client = await transactionOn(world().url);
  const numbers = callers.map(({ store }) => store).join();
  await client.query(`SELECT 1 FROM plant_store.stores WHERE store IN (${numbers}) FOR UPDATE`);
  return { release: () => client.end() };
}

/** Lets statements about a store fail with this SQLSTATE. */
async function failWith(code: string, on: string, { store }: Caller): Promise<void> {
  await query(
    world().url,
    `
      CREATE FUNCTION plant_store.fail_${code}() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'failure' USING ERRCODE = '${code}'; END $$;
      CREATE TRIGGER fail BEFORE ${on} FOR EACH ROW
        WHEN (NEW.store = ${store}) EXECUTE FUNCTION plant_store.fail_${code}()`,
  );
}

describe('PostgreSQL: changes to many stores', () => {
  it('share a few transactions, which do not wait for stores that another session has locked', async () => {
    const { storage, addStores } = world();
    const callers = await addStores(stores);
    const createIn = async (some: readonly Caller[]) =>
      new Set(await Promise.all(some.map((caller) => create(storage, caller))));
    const twice = await commitsOf(async () => {
      for (const id of [1, 2]) assert.deepEqual(await createIn(callers), new Set([id]));
    });
    assert.equal(twice.writes, 2 * stores);
    assert.ok(twice.commits <= 4, `${twice.commits} commits`);

    const [locked, others] = [callers.slice(0, lockedStores), callers.slice(lockedStores)];
    const { release } = await lock(locked);
    const startedMs = performance.now();
    const waiting = createIn(locked);
    assert.deepEqual(await createIn(others), new Set([3]));
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs < lockWaitMs, `${tookMs} ms`);
    await release();
    assert.deepEqual(await waiting, new Set([3]));

    const { commits } = await commitsOf(async () => {
      assert.deepEqual(await createIn(callers), new Set([4]));
    });
    assert.ok(commits <= 2, 'stores that were locked share transactions again');
  });

  it('do not wait long if there are hundreds of which some are locked', async () => {
    const { storage, addStores } = world();
    const callers = await addStores(manyStores);
    const isLocked = (_: unknown, at: number) => at % 50 === 49;
    const { release } = await lock(callers.filter(isLocked));
    const outcomes = callers.map((each) => create(storage, each));
    const others = outcomes.filter((outcome, at) => !isLocked(outcome, at));
    assert.deepEqual(new Set(await Promise.all(others)), new Set([1]));
    await release();
    await Promise.all(outcomes);
  });

  it('fill the quota of each store exactly, also if some only delete', async (t) => {
    const storage = await openAgain(t, { quotas: { perUser: 2, perStore: 3 } });
    const callers = await world().addStores(stores);
    const filling = await commitsOf(async () => {
      for (const expected of [
        [1, 2, 'quota-exceeded'],
        ['quota-exceeded', 'quota-exceeded', 'quota-exceeded'],
      ]) {
        const outcomes = callers.map((caller) =>
          Promise.all(expected.map(() => create(storage, caller))),
        );
        for (const outcome of await Promise.all(outcomes)) assert.deepEqual(outcome, expected);
      }
    });
    assert.ok(filling.commits <= 4, `${filling.commits} transactions`);

    await Promise.all(callers.map((caller) => storage.plants.delete(caller, 1)));
    const { commits } = await commitsOf(async () => {
      const outcomes = callers.map((caller, at) =>
        at % 2 === 0
          ? storage.plants.delete(caller, 2).then((position) => position !== undefined)
          : create(storage, caller),
      );
      const expected = callers.map((_, at) => (at % 2 === 0 ? true : 3));
      assert.deepEqual(await Promise.all(outcomes), expected);
    });
    assert.ok(commits <= 2, `${commits} transactions`);
  });

  it('of several replicas do not wait for locked stores, whose changes get 503', async (t) => {
    // With quotas, other statements follow those that lock the stores.
    const options = { quotas: { perUser: 1_000, perStore: 1_000 } };
    const [first, second] = [await openAgain(t, options), await openAgain(t, options)];
    const callers = await world().addStores(stores);
    const isLocked = (_: Caller, at: number) => at % 8 === 7;
    const locked = callers.filter(isLocked);
    const others = callers.filter((caller, at) => !isLocked(caller, at));
    const { release } = await lock(locked);

    const createIn = (some: readonly Caller[]) =>
      Promise.all(
        [first, second].flatMap((storage) => some.map((caller) => create(storage, caller))),
      );
    const waiting = createIn(locked);
    const ids = await createIn(others);
    assert.deepEqual(new Set(ids), new Set([1, 2])); // and no 503 after 4 seconds

    assert.deepEqual(new Set(await waiting), new Set(['storage-unavailable']));
    await release();
    for (const caller of locked) {
      assert.deepEqual(await idsOf(first, caller), []);
      assert.equal(await create(first, caller), 1);
    }
  });

  it('get 503 if a plant stays locked', async (t) => {
    const storage = await openAgain(t, { quotas: { perUser: 2, perStore: undefined } });
    const [caller] = await world().addStores(1);
    assert.ok(caller);
    assert.equal(await create(storage, caller), 1);
    const client = await transactionOn(world().url);
    t.after(() => client.end());
    await client.query(`SELECT 1 FROM plant_store.plants WHERE store = ${caller.store} FOR UPDATE`);
    const deleted = assert.rejects(storage.plants.delete(caller, 1), {
      kind: 'storage-unavailable',
    });
    assert.equal(await create(storage, caller), 'storage-unavailable');
    await deleted;
  });

  it('succeed if the data of one of the stores is corrupted', async (t) => {
    const storage = await openAgain(t);
    const [corrupted, ...others] = await world().addStores(stores);
    assert.ok(corrupted);
    await failWith('XX002', 'INSERT ON plant_store.plants', corrupted);
    const failed = assert.rejects(storage.plants.create(corrupted, { name: 'a' }), {
      code: 'XX002',
    });
    const ids = await Promise.all(others.map((caller) => create(storage, caller)));
    assert.deepEqual(new Set(ids), new Set([1]));
    await failed;
  });

  it('get 503 if the server has become read-only, because it rolls them back', async (t) => {
    const storage = await openAgain(t);
    const [caller] = await world().addStores(1);
    assert.ok(caller);
    await failWith('25006', 'UPDATE ON plant_store.stores', caller);
    assert.equal(await create(storage, caller), 'storage-unavailable');
  });

  it('succeed if one of the stores does not exist', async (t) => {
    for (const quotas of [undefined, { perUser: 1_000, perStore: 1_000 }]) {
      const storage = await openAgain(t, { quotas });
      const callers = await world().addStores(3);
      const missing: Caller = { ...(callers[0] as Caller), store: -1 };
      const outcomes = [...callers, missing].map((caller) => create(storage, caller));
      assert.deepEqual(await Promise.all(outcomes), [1, 1, 1, 'invalid-token']);
    }
  });

  it('get the right outcome for each store if the connection is lost', async (t) => {
    const { storage: sound, addStores } = world();
    const url = new URL(world().url);
    await using proxy = await Proxy.to(Number(url.port));
    url.port = String(proxy.port);
    const outcomes = new Set<string>();
    for (let cut = 0; cut < cuts; cut++) {
      const callers = await addStores(cutStores);
      await using storage = await openPostgres(url.href);
      const before = proxy.cuts;
      proxy.bytesLeft = Math.ceil(((cut + Math.random()) / cuts) * changeBytes);
      const created = Promise.all(callers.map((caller) => create(storage, caller)));
      let isDone = false;
      void created.finally(() => (isDone = true));
      await until('the connection is cut', () => proxy.cuts > before || isDone);
      proxy.bytesLeft = Infinity;
      const kinds = (await created).map((outcome) => typeof outcome === 'number' || outcome);
      assert.equal(new Set(kinds).size, 1, 'what is known of one store is known of all');
      for (const [at, outcome] of (await created).entries()) {
        const ids = await idsOf(sound, callers[at] as Caller);
        const isStored = typeof outcome === 'number' ? ids.includes(outcome) : ids.length > 0;
        assert.ok(ids.length <= 1, 'nothing is stored twice');
        const isCut = proxy.cuts > before ? 'cut' : 'whole';
        outcomes.add(`${isCut}: ${typeof outcome === 'number' ? 'created' : outcome}: ${isStored}`);
      }
    }
    t.diagnostic([...outcomes].join('; '));
    for (const lie of ['created: false', 'storage-unavailable: true']) {
      assert.ok(![...outcomes].some((outcome) => outcome.includes(lie)), lie);
    }
    for (const seen of ['cut: created: true', 'whole: created: true']) {
      assert.ok(outcomes.has(seen), `cuts happened during the changes and after them: ${seen}`);
    }
  });
});
