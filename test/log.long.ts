import { it } from 'node:test';
import * as fc from 'fast-check';
import { batches, logReplays, logSurvives } from './log.ts';
import { replicasOnPostgres, workersOnSqlite } from './support/fault-injection.ts';
import { without } from './support/programs.ts';
import { rounds } from './support/rounds.ts';
import { it as itOnEach, testDatabase } from './support/storages.ts';

itOnEach('the log of many random changes replays to the store', async (t) => {
  const database = await testDatabase(t);
  await using storage = await database.open();
  await using other = await database.open();
  const replays = fc.asyncProperty(batches(60), (all) => logReplays([storage, other], all, {}));
  await rounds(t, (_, seed) => fc.assert(replays, { seed, numRuns: 10, endOnFailure: true }));
});

it(
  'SQLite: the log replays to the store, while workers die',
  { skip: without('ps') },
  async (t) => {
    const deployment = await workersOnSqlite(t, 2);
    await rounds(t, (inner, seed) => logSurvives(inner, deployment, seed));
  },
);

it('PostgreSQL: the log replays to the store, while replicas and the server die', async (t) => {
  const deployment = await replicasOnPostgres(t, 2);
  await rounds(t, (inner, seed) => logSurvives(inner, deployment, seed));
});
