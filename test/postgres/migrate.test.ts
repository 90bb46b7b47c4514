/**
 * Migrations that take long.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { it } from 'node:test';
import { Client } from 'pg';
import { runUnlimited } from '../../src/postgres/schema/unlimited.ts';
import { Servers } from '../../src/postgres/servers.ts';
import { parseAddress } from '../../src/postgres/pool/address.ts';
import { runOk, start } from '../support/command.ts';
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

it('PostgreSQL: migrate leaves what a newer version has created while it waited', async (t) => {
  const { url } = await emptyDatabase(t, 'PostgreSQL');
  await runOk(['migrate', '--database', url]);
  const setVersion = 'UPDATE plant_store.migrations SET version =';
  await query(url, `${setVersion} 0`);
  const newer = new Client({ connectionString: url });
  newer.on('error', () => {}); // its database is dropped
  await newer.connect();
  t.after(() => newer.end());
  await newer.query('SELECT pg_advisory_lock($1)', [0x506c6e74]);
  const child = start(['migrate', '--database', url]);
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'close');
  const waits = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`;
  await until('it waits', async () => (await query(url, waits)).length > 0);
  await newer.query(`${setVersion} 1999`); // committed before the lock is released
  await newer.query('SELECT pg_advisory_unlock_all()');
  assert.deepEqual(await ended, [0, null]);
  assert.deepEqual(await query(url, 'SELECT version FROM plant_store.migrations'), [
    { version: 1_999 },
  ]);
});

it('PostgreSQL: a transaction without time limits ends, even if its process stops', async (t) => {
  const { url, proxy, direct } = await databaseBehindProxy(t);
  const servers = new Servers(parseAddress(url), { create: false });
  t.after(() => servers.close());
  const sleep = 'SELECT pg_sleep(1)';
  const isInProgress = async () => {
    const rows = await query(
      direct,
      `SELECT 1 FROM pg_stat_activity
       WHERE datname = current_database() AND query = '${sleep}' AND state <> 'idle'`,
    );
    return rows.length > 0;
  };
  const ended = servers.any.withConnection((connection) => runUnlimited(connection, sleep, 0));
  const cut = assert.rejects(ended);
  await until('the statement runs', isInProgress);
  proxy.isStuck = true; // the process receives and sends nothing more
  await until('the transaction has ended', async () => !(await isInProgress()));
  proxy.cutAll();
  await cut;
});
