/**
 * Migrations of large tables.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runUnlimited } from '../../src/postgres/citus/citus.ts';
import { Cluster } from '../../src/postgres/citus/cluster.ts';
import { parseAddress } from '../../src/postgres/pool/address.ts';
import { runOk } from '../support/command.ts';
import { query } from '../support/postgres.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { emptyDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';
import { newerProgram } from '../support/versions.ts';
import {
  assertMigrated,
  createPlants,
  limitSessions,
  removeLimits,
  statements,
} from './migrate.ts';

const plants = 30_000;

it('PostgreSQL: migrate has no time limit, whatever the limits of the role are', async (t) => {
  const database = await emptyDatabase(t, 'PostgreSQL');
  await createPlants(database, plants);
  const { url } = database;
  await limitSessions([url]);
  const program = newerProgram(t, { older: 'refused', postgres: statements }); // its session waits idle
  await runOk(['migrate', '--database', url], { program });
  await removeLimits([url]);
  await assertMigrated(url, plants);
});

it('PostgreSQL: a transaction without time limits ends, even if its process stops', async (t) => {
  const { url, proxy, direct } = await databaseBehindProxy(t);
  const cluster = new Cluster(parseAddress(url));
  t.after(() => cluster.close());
  const sleep = 'SELECT pg_sleep(1)';
  const isInProgress = async () => {
    const rows = await query(
      direct,
      `SELECT 1 FROM pg_stat_activity
       WHERE datname = current_database() AND query = '${sleep}' AND state <> 'idle'`,
    );
    return rows.length > 0;
  };
  const ended = cluster.any.withConnection((connection) => runUnlimited(connection, sleep, 0));
  const cut = assert.rejects(ended);
  await until('the statement runs', isInProgress);
  proxy.isStuck = true; // the process receives and sends nothing more
  await until('the transaction has ended', async () => !(await isInProgress()));
  proxy.cutAll();
  await cut;
});
