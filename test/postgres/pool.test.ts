/**
 * What requests share on their way to the database: the places of the pool, a connection, and a round trip.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { scopes, type Caller } from '../../src/access/access.ts';
import { credentialOf, makeToken } from '../../src/access/token.ts';
import { Problem } from '../../src/problem.ts';
import type { Storage } from '../../src/storage.ts';
import { addToken, startApp } from '../support/app.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { shared } from '../support/shared.ts';
import { openPostgres, testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';
import { identify } from '../support/tokens.ts';

/** One more is refused at once, and so are these. */
const maxReads = 2_048;
const moreReads = 12;
/** A page of them has 48 KB, and 100 MB wait for the database. */
const plants = Array.from({ length: 40 }, (_, at) => ({
  id: at + 1,
  name: '🌵'.repeat(200),
  tag: '🌱'.repeat(100),
}));

async function callerIn(storage: Storage): Promise<Caller> {
  const grant = await identify(storage, await addToken(storage, 'alice'));
  assert.ok(grant);
  return grant.caller;
}

/** What each came to, of `fulfilled` and the kinds of problems. */
async function outcomesOf(reads: readonly Promise<unknown>[]): Promise<Map<string, number>> {
  const outcomes = new Map<string, number>();
  for (const one of await Promise.allSettled(reads)) {
    if (one.status === 'rejected') assert.ok(one.reason instanceof Problem, String(one.reason));
    const outcome = one.status === 'rejected' ? one.reason.kind : one.status;
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  return outcomes;
}

describe('PostgreSQL: reads', () => {
  it('are refused beyond the maximum, and refused reads do not block later ones', async (t) => {
    const database = await testDatabase(t, 'PostgreSQL');
    await using storage = await database.open();
    const caller = await callerIn(storage);
    await database.fill(plants);

    const query = { after: 0, limit: plants.length, fields: ['name', 'tag'] } as const;
    const startedMs = performance.now();
    const outcomes = await outcomesOf(
      Array.from(
        { length: maxReads + moreReads },
        async () => void (await storage.plants.list(caller, query)),
      ),
    );
    t.diagnostic(JSON.stringify([...outcomes]));
    assert.ok(performance.now() - startedMs < 10_000);
    assert.ok((outcomes.get('overloaded') ?? 0) >= moreReads);
    assert.ok((outcomes.get('fulfilled') ?? 0) > 0);
    // The other reads were cancelled, so the database does not work on them.
    const isGood = async () => (await storage.plants.find(caller, 0)) === undefined;
    await until('the next read succeeds', () => isGood().catch(() => false));
  });

  it('of made-up tokens have one turn, so those of users pass', async (t) => {
    const database = await testDatabase(t, 'PostgreSQL');
    await using storage = await database.open();
    const token = await addToken(storage, 'alice');
    const caller = (await identify(storage, token))?.caller ?? assert.fail();
    let ended = 0;
    const madeUp = Array.from({ length: maxReads }, (_, at) => {
      // They name stores of their own, and that of alice.
      const credential = credentialOf(makeToken(at % 2 === 0 ? caller.store : at));
      return storage.identity.identify(credential).finally(() => ended++);
    });
    const outcomes = outcomesOf(madeUp); // some can be refused
    await new Promise(setImmediate);
    for (const read of [
      () => identify(storage, token),
      () => storage.plants.find(caller, 1),
      () => storage.plants.list(caller, { after: 0, limit: 20, fields: ['name'] }),
    ]) {
      const before = ended;
      await read();
      t.diagnostic(`${ended - before} of ${maxReads} came first`);
      assert.ok(ended - before < maxReads / 4, `${ended - before} came first`);
    }
    assert.ok(ended < maxReads, 'some are still looked up');
    await outcomes;
  });

  it('free their places if their connections are cut', async (t) => {
    const { url, proxy } = await databaseBehindProxy(t);
    await using storage = await openPostgres(url);
    const caller = await callerIn(storage);
    for (let round = 0; round < 4; round++) {
      proxy.isStuck = true;
      const reads = Array.from({ length: 300 }, () => storage.plants.find(caller, 1));
      const outcomes = outcomesOf(reads); // some can be refused before the cut
      await new Promise(setImmediate);
      proxy.cutAll();
      proxy.isStuck = false;
      await outcomes;
    }
    const isGood = async () => (await storage.plants.find(caller, 1)) === undefined;
    await until('reads succeed', () => isGood().catch(() => false));
  });
});

it('PostgreSQL: rejects with the error of a defect, and other requests get their own results', async (t) => {
  await using storage = await (await testDatabase(t, 'PostgreSQL')).open();
  const caller = await callerIn(storage);
  const defect = new Error('a value that pg cannot send');
  /** Fails when the driver converts it to bytes. The defect is that it is used as an id or a name. */
  const unsendable = {
    toPostgres() {
      throw defect;
    },
  } as never;
  const create = (name: string) => storage.plants.create(caller, { name });
  const find = (id: number) => storage.plants.find(caller, id);
  const created = await Promise.all(['a', 'b', 'c'].map(create));
  const found = created.map(({ id, name, tag, owner }) => ({ id, name, tag, owner }));
  const findAll = () => Promise.all(found.map(({ id }) => find(id)));

  const passesThrough = (error: unknown) => error === defect;
  const [before, , after] = await Promise.all([
    findAll(),
    assert.rejects(find(unsendable), passesThrough),
    findAll(),
    assert.rejects(create(unsendable), passesThrough),
    assert.rejects(storage.plants.delete(caller, unsendable), passesThrough),
  ]);
  assert.deepEqual([before, after], [found, found]);

  assert.equal((await create('d')).name, 'd');
  assert.deepEqual(await findAll(), found);
});

/** A page is read while the grant of its caller is checked, so a list waits once for the database. */
describe('PostgreSQL: a page', () => {
  const users = 5;
  /** In each direction, so that all statements of a turn arrive before the first response. */
  const latencyMs = 10;
  const world = shared(async (t) => {
    const { url, proxy } = await databaseBehindProxy(t);
    proxy.latencyMs = () => latencyMs;
    return { app: await startApp(t, { open: () => openPostgres(url) }), proxy };
  });

  for (const role of ['member', 'manager'] as const) {
    it(`takes one round trip for a ${role} with a cached grant, and two without`, async (t) => {
      const { app, proxy } = world();
      const turns = { first: [] as number[], later: [] as number[] };
      for (let at = 0; at < users; at++) {
        const token = await app.token('alice', { role, store: `store ${at} of a ${role}` });
        for (const counts of [turns.first, turns.later]) {
          proxy.turns = 0;
          const { status } = await app.call('GET', '/plants?limit=20', { token });
          assert.equal(status, 200);
          counts.push(proxy.turns);
        }
      }
      t.diagnostic(JSON.stringify(turns));
      // The checks of the service can add turns to those of a request.
      assert.equal(Math.min(...turns.first), 2);
      assert.equal(Math.min(...turns.later), 1);
    });
  }

  it('whose client interrupts it does not change what the next one gets', async () => {
    const { app, proxy } = world();
    const [alice, bob] = [await app.token('alice', { scopes }), await app.token('bob')];
    await app.call('POST', '/plants', { token: alice, json: { name: 'Monstera' } });
    const list = async () => (await app.call('GET', '/plants?limit=20', { token: bob })).text;
    for (let round = 0; round < 5; round++) {
      // The grant that is cached is not current any more.
      await app.call('PUT', '/shares/bob', { token: alice, json: { access: 'read' } });
      const socket = connect(app.port, '127.0.0.1');
      proxy.turns = 0;
      socket.write(
        `GET /plants?limit=20 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${bob}\r\n\r\n`,
      );
      await until('the service has asked the database', () => proxy.turns > 0);
      socket.resetAndDestroy();
      assert.equal(await list(), '[{"name":"Monstera","tag":""}]');
    }
  });
});
