import { it } from 'node:test';
import { isLinearizable } from './linear.ts';
import { replicasOnPostgres, workersOnSqlite } from './support/fault-injection.ts';
import { without } from './support/programs.ts';
import { rounds } from './support/rounds.ts';

const load = { operations: 8_000, operationsPerFault: 1_200 };

it(
  'SQLite: all operations are linearizable while workers die',
  { skip: without('ps') },
  async (t) => {
    const deployment = await workersOnSqlite(t, 2);
    await rounds(t, (inner, seed) => isLinearizable(inner, { ...deployment, ...load, seed }));
  },
);

it('PostgreSQL: all operations are linearizable while three replicas die', async (t) => {
  const deployment = await replicasOnPostgres(t, 3);
  await rounds(t, (inner, seed) => isLinearizable(inner, { ...deployment, ...load, seed }));
});
