/**
 * Mirrors that follow a store while its processes and its database fail, on both engines.
 */
import { it } from 'node:test';
import { replicasOnPostgres, workersOnSqlite } from './support/fault-injection.ts';
import { followUnderFaults } from './support/mirrors-under-faults.ts';
import { without } from './support/programs.ts';

const changes = Number(process.env['PLANT_STORE_TEST_CHANGES'] ?? 1_600);
const size = {
  changes,
  mirrors: 50,
  writers: 32,
  changesPerFault: Math.max(250, changes / 40),
};

it(
  'SQLite: mirrors equal the lists of their users, while workers die',
  { skip: without('ps') },
  async (t) => followUnderFaults(t, await workersOnSqlite(t, 3), size),
);

it('PostgreSQL: mirrors equal the lists of their users, while replicas, backends and connections die', async (t) =>
  followUnderFaults(t, await replicasOnPostgres(t, 3), size));
