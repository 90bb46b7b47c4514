import { it } from 'node:test';
import { isLinearizable } from './linear.ts';
import { replicasOnPostgres, workersOnSqlite } from './support/fault-injection.ts';
import { without } from './support/programs.ts';
import { rounds, sizeOf } from './support/rounds.ts';

const operations = sizeOf({ usual: 1_200, long: 8_000 });
const replicas = sizeOf({ usual: 2, long: 3 });

it('SQLite: every plant is linearizable while workers die', { skip: without('ps') }, async (t) => {
  const load = { ...(await workersOnSqlite(t, 2)), operations };
  const operationsPerFault = sizeOf({ usual: 360, long: 1_200 });
  await rounds(t, (inner, seed) => isLinearizable(inner, { ...load, operationsPerFault, seed }));
});

it('PostgreSQL: every plant is linearizable while replicas, backends and connections die', async (t) => {
  const load = { ...(await replicasOnPostgres(t, replicas)), operations };
  const operationsPerFault = sizeOf({ usual: 270, long: 1_200 });
  await rounds(t, (inner, seed) => isLinearizable(inner, { ...load, operationsPerFault, seed }));
});
