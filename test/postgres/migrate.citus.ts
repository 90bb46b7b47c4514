/**
 * Migrations of large tables on a Citus cluster: `npm run test:citus`, with the variables of test/support/citus.ts.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Client } from 'pg';
import { sourceOf } from '../cli/copy.ts';
import { runOk } from '../support/command.ts';
import { isCitus, joinCluster, leaveCluster, onWorkers } from '../support/citus.ts';
import { query } from '../support/postgres.ts';
import { emptyDatabase } from '../support/storages.ts';
import { newerProgram } from '../support/versions.ts';
import {
  assertMigrated,
  createPlants,
  index,
  limitSessions,
  removeLimits,
  statements,
} from './migrate.ts';

assert.ok(isCitus, 'PLANT_STORE_TEST_CITUS_WORKERS names no workers');

const onAll = (url: string) => [url, ...onWorkers(url)];

it('Citus: migrate distributes many rows, whatever the limits of the role are', async (t) => {
  const database = await emptyDatabase(t, 'PostgreSQL');
  const { url } = database;
  await leaveCluster(url);
  const plants = 100_000;
  await createPlants(database, plants);
  await joinCluster(url);
  await limitSessions(onAll(url));
  await runOk(['migrate', '--database', url]);
  await removeLimits(onAll(url));
  const [row] = await query(
    url,
    `SELECT (SELECT count(*)::int FROM plant_store.plants) AS plants,
            (SELECT count(*)::int FROM pg_tables WHERE schemaname = 'plant_store' AND
               format('%I.%I', schemaname, tablename)::regclass NOT IN (SELECT table_name FROM citus_tables)
            ) AS local`,
  );
  assert.deepEqual(row, { plants, local: 0 });
});

it('Citus: migrate has no time limit on any machine, whatever the limits of the role are', async (t) => {
  const database = await emptyDatabase(t, 'PostgreSQL');
  const { url } = database;
  const plants = 30_000;
  await createPlants(database, plants);
  await limitSessions(onAll(url));
  await abortIndex(url);
  const program = newerProgram(t, { older: 'refused', postgres: statements }); // its session waits idle
  await runOk(['migrate', '--database', url], { program });
  await removeLimits(onAll(url));
  await assertMigrated(url, plants);
  const invalid = await query(
    url,
    `SELECT * FROM run_command_on_workers(
       'SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid WHERE NOT indisvalid')
     WHERE NOT success OR result <> ''`,
  );
  assert.deepEqual(invalid, []);
});

/** Leaves an invalid index, as an aborted migration of an older version did. */
async function abortIndex(url: string): Promise<void> {
  const client = new Client({ connectionString: url, statement_timeout: 60_000 });
  await client.connect();
  try {
    await assert.rejects(client.query(index), /statement timeout/);
  } finally {
    await client.end();
  }
}

it('Citus: copies to a cluster and back, whatever the limits of the role are', async (t) => {
  const { url } = await emptyDatabase(t, 'PostgreSQL');
  await limitSessions(onAll(url));
  const source = await sourceOf(t, 'SQLite', 10_000);
  const back = await emptyDatabase(t, 'SQLite');
  await runOk(['copy', '--from', source.url, '--to', url]); // it compares digests
  await runOk(['copy', '--from', url, '--to', back.url]);
});
