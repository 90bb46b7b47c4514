/**
 * The same as linear.test.ts for longer: PLANT_STORE_TEST_SEED repeats the choices of a run, though not
 * its timing, and PLANT_STORE_TEST_OPERATIONS sets how many operations each storage answers.
 */
import { it } from 'node:test';
import { isLinearizable } from './linear.ts';
import { canKillWorkers, replicasOnPostgres, workersOnSqlite } from './support/blows.ts';

const seed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now() % 2 ** 31);
const operations = Number(process.env['PLANT_STORE_TEST_OPERATIONS'] ?? 150_000);
// However few there are, everything happens at least once.
const operationsEach = Math.min(5_000, operations / 6);
const title = `${operations} operations are linearizable (PLANT_STORE_TEST_SEED=${seed})`;

it(`SQLite: two workers that die, and ${title}`, async (t) => {
  if (!canKillWorkers()) return t.skip('ps is not installed');
  const struck = await workersOnSqlite(t, 2);
  await isLinearizable(t, { ...struck, operations, operationsEach, seed });
});

it(`PostgreSQL: three replicas that die, and ${title}`, async (t) => {
  const struck = await replicasOnPostgres(t, 3);
  await isLinearizable(t, { ...struck, operations, operationsEach, seed });
});
