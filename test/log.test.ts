import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { batches, logReplays } from './log.ts';
import { it, storageOf, testDatabase } from './support/storages.ts';

it('the log of random changes replays to the store', async (t) => {
  const database = await testDatabase(t);
  await using storage = await database.open();
  await using other = await database.open();
  const counts = {};
  const replays = fc.asyncProperty(batches(25), (all) => logReplays([storage, other], all, counts));
  const isSqlite = storageOf(t) === 'SQLite';
  await fc.assert(replays, { numRuns: isSqlite ? 20 : 5 }); // a failure prints its seed
  t.diagnostic(JSON.stringify(counts));
  assert.ok(!isSqlite || Object.keys(counts).length >= 10, 'almost every event happened');
});
