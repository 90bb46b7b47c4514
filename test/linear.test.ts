import { it } from 'node:test';
import { isLinearizable } from './linear.ts';
import { replicasOnPostgres, workersOnSqlite } from './support/fault-injection.ts';
import { without } from './support/programs.ts';

const operations = 1_600;
const seed = Date.now() % 2 ** 31;

it('SQLite: every plant is linearizable while workers die', { skip: without('ps') }, async (t) => {
  const deployment = await workersOnSqlite(t, 2);
  await isLinearizable(t, { ...deployment, operations, operationsPerFault: 480, seed });
});

it('PostgreSQL: every plant is linearizable while replicas, backends and connections die', async (t) => {
  const deployment = await replicasOnPostgres(t, 2);
  await isLinearizable(t, { ...deployment, operations, operationsPerFault: 360, seed });
});
