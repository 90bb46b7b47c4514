/**
 * Migrations of large tables on a Citus cluster: `npm run test:citus`, with the variables of test/support/citus.ts.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { sourceOf } from '../cli/copy.ts';
import { addToken } from '../support/app.ts';
import { runOk } from '../support/command.ts';
import { isCitus, joinCluster, leaveCluster, onWorkers } from '../support/citus.ts';
import { query } from '../support/postgres.ts';
import { emptyDatabase, type TestDatabase } from '../support/storages.ts';
import { newerProgram } from '../support/versions.ts';
import { limitSessions, removeLimits } from './migrate.ts';

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
  const program = newerProgram(t, { older: 'refused', postgres: statements }); // its session waits idle
  await runOk(['migrate', '--database', url], { program });
  await removeLimits(onAll(url));
  await assertMigrated(url, plants);
});

it('Citus: copies to a cluster and back, whatever the limits of the role are', async (t) => {
  const { url } = await emptyDatabase(t, 'PostgreSQL');
  await limitSessions(onAll(url));
  const source = await sourceOf(t, 'SQLite', 10_000);
  const back = await emptyDatabase(t, 'SQLite');
  await runOk(['copy', '--from', source.url, '--to', url]); // it compares digests
  await runOk(['copy', '--from', url, '--to', back.url]);
});

/** The expression is costly, so that the index takes seconds. */
const index = `
  CREATE INDEX IF NOT EXISTS plants_by_note
  ON plant_store.plants (store, md5(repeat(name, 3000)), id)`;

/** The rows of one table are distributed by another column than those of the other. */
const statements = `
  ALTER TABLE plant_store.plants ADD COLUMN IF NOT EXISTS note text;
  UPDATE plant_store.plants SET note = name WHERE note IS NULL;
  ${index};
  INSERT INTO plant_store.shares (store, owner, user_name, access, since)
  SELECT id, owner, name, 'read', 0 FROM plant_store.plants ON CONFLICT DO NOTHING;
  DROP INDEX IF EXISTS plant_store.shares_by_user;`;

/** Creates the schema, and many plants of one user. */
async function createPlants(database: TestDatabase, plants: number): Promise<void> {
  const storage = await database.open();
  await addToken(storage, 'alice');
  await storage[Symbol.asyncDispose]();
  await query(
    database.url,
    `INSERT INTO plant_store.plants (store, id, owner, tag, name)
     SELECT store, plant, id, '', 'plant ' || plant
     FROM plant_store.users, generate_series(1, ${plants}) AS plant`,
  );
}

/** Asserts that all statements of the migration were run. */
async function assertMigrated(url: string, plants: number): Promise<void> {
  const [row] = await query(
    url,
    `SELECT
       (SELECT count(*)::int FROM plant_store.plants WHERE note = name) AS plants,
       (SELECT count(*)::int FROM plant_store.shares) AS shares,
       (SELECT json_agg(relname || ' ' || indisvalid) FROM pg_index JOIN pg_class ON oid = indexrelid
        WHERE relname IN ('plants_by_note', 'shares_by_user')) AS indexes`,
  );
  assert.deepEqual(row, { plants, shares: plants, indexes: ['plants_by_note true'] });
}
