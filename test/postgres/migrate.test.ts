/**
 * Migrations that take long.
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
import { limitSessions } from './migrate.ts';

it('PostgreSQL: migrate has no time limit, whatever the limits of the role are', async (t) => {
  const { url } = await emptyDatabase(t, 'PostgreSQL');
  await runOk(['migrate', '--database', url]);
  await limitSessions([url]);
  // Longer than any limit of the role or of the service.
  const program = newerProgram(t, { older: 'refused', postgres: 'SELECT pg_sleep(5);' });
  await runOk(['migrate', '--database', url], { program });
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
