/**
 * A longer run of linear.test.ts. PLANT_STORE_TEST_SEED repeats the random choices of a run, but not its
 * timing. PLANT_STORE_TEST_OPERATIONS sets the number of operations for each storage.
 */
import { it } from 'node:test';
import { isLinearizable } from './linear.ts';
import { replicasOnPostgres, workersOnSqlite } from './support/fault-injection.ts';
import { without } from './support/programs.ts';

const seed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now() % 2 ** 31);
const operations = Number(process.env['PLANT_STORE_TEST_OPERATIONS'] ?? 150_000);
// Even with few operations, every fault happens at least once.
const operationsPerFault = Math.min(5_000, operations / 6);
const title = `${operations} operations are linearizable (PLANT_STORE_TEST_SEED=${seed})`;

it(`SQLite: two workers die, and ${title}`, { skip: without('ps') }, async (t) => {
  const deployment = await workersOnSqlite(t, 2);
  await isLinearizable(t, { ...deployment, operations, operationsPerFault, seed });
});

it(`PostgreSQL: three replicas die, and ${title}`, async (t) => {
  const deployment = await replicasOnPostgres(t, 3);
  await isLinearizable(t, { ...deployment, operations, operationsPerFault, seed });
});
