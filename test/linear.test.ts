import { it } from 'node:test';
import { isLinearizable } from './linear.ts';
import { canKillWorkers, replicasOnPostgres, workersOnSqlite } from './support/fault-injection.ts';

const operations = 4_000;
const seed = Date.now() % 2 ** 31;

it('SQLite: every plant is linearizable while workers die', async (t) => {
  if (!canKillWorkers()) return t.skip('ps is not installed');
  const deployment = await workersOnSqlite(t, 2);
  await isLinearizable(t, { ...deployment, operations, operationsPerFault: 1_200, seed });
});

it('PostgreSQL: every plant is linearizable while replicas, backends and connections die', async (t) => {
  const deployment = await replicasOnPostgres(t, 2);
  await isLinearizable(t, { ...deployment, operations, operationsPerFault: 900, seed });
});
