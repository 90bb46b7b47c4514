import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { batches, logReplays } from './log.ts';
import { rounds, sizeOf } from './support/rounds.ts';
import { it, storageOf, testDatabase } from './support/storages.ts';

const size = sizeOf({ usual: 25, long: 60 });

it('the log of random changes replays to the store', async (t) => {
  const database = await testDatabase(t);
  await using storage = await database.open();
  await using other = await database.open();
  const counts = {};
  const replays = fc.asyncProperty(batches(size), (all) =>
    logReplays([storage, other], all, counts),
  );
  const isSqlite = storageOf(t) === 'SQLite';
  const numRuns = isSqlite ? 20 : 5;
  await rounds(t, (_, seed) => fc.assert(replays, { seed, numRuns, endOnFailure: true }));
  t.diagnostic(JSON.stringify(counts));
  assert.ok(!isSqlite || Object.keys(counts).length >= 10, 'almost every event happened');
});
