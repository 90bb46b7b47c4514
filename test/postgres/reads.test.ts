/**
 * More reads at a time than the database can answer in time, and reads whose connections are cut.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Caller } from '../../src/access/access.ts';
import { Problem } from '../../src/problem.ts';
import type { Storage } from '../../src/storage.ts';
import { addToken } from '../support/app.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { openPostgres, testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';
import { identify } from '../support/tokens.ts';

/** One more is refused at once, and so are these. */
const maxReads = 2_048;
const moreReads = 12;
/** A page of them has 120 KB, and more than 200 MB wait for the database. */
const plants = Array.from({ length: 100 }, (_, at) => ({
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
