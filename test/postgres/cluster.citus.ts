/**
 * What is specific to a Citus cluster: `npm run test:citus`, with the variables of test/support/citus.ts.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { Client } from 'pg';
import { credentialOf } from '../../src/token.ts';
import { run, runOk } from '../support/command.ts';
import { addToken } from '../support/app.ts';
import { isCitus, joinCluster, leaveCluster, onWorkers } from '../support/citus.ts';
import { query } from '../support/postgres.ts';
import { testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';
import { ofCommands, ofRequests } from './statements.ts';

assert.ok(isCitus, 'PLANT_STORE_TEST_CITUS_WORKERS names no workers');

const spread = [
  { name: 'plant_store.migrations', by: '<none>' },
  { name: 'plant_store.named_stores', by: 'key' },
  { name: 'plant_store.plants', by: 'store' },
  { name: 'plant_store.shares', by: 'store' },
  { name: 'plant_store.store_tokens', by: 'store' },
  { name: 'plant_store.stores', by: 'store' },
  { name: 'plant_store.unrouted_tokens', by: 'id' },
  { name: 'plant_store.users', by: 'store' },
];

function distributionOf(url: string): Promise<unknown[]> {
  return query(
    url,
    'SELECT table_name::text AS name, distribution_column AS by FROM citus_tables ORDER BY 1',
  );
}

it('Citus: distributes a new schema over the machines', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  await runOk(['migrate', '--database', url]);
  assert.deepEqual(await distributionOf(url), spread);
});

it('Citus: migrate distributes tables and rows that are older than the extension', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  await leaveCluster(database.url);
  const storage = await database.open();
  const token = await addToken(storage, 'alice');
  await storage[Symbol.asyncDispose]();
  const plants = Array.from({ length: 1_000 }, (_, at) => ({ id: at + 1, tag: '', name: 'Fern' }));
  await database.fill(plants);

  await joinCluster(database.url);
  await Promise.all([1, 2].map(() => runOk(['migrate', '--database', database.url])));
  assert.deepEqual(await distributionOf(database.url), spread);
  await using again = await database.open();
  const grant = await again.identify(credentialOf(token));
  assert.ok(grant);
  const { json } = await again.listPlants(grant.caller, { after: 0, limit: 2_000, fields: ['id'] });
  assert.equal(json.split('},{').length, plants.length);
  const { id } = await again.createPlant(grant.caller, { name: 'next' });
  assert.equal(id, plants.length + 1);
});

it('Citus: refuses a worker without durable commits', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  const [worker = ''] = onWorkers(url);
  const { host, pathname } = new URL(worker);
  await leaveCluster(url); // otherwise the setting would apply everywhere
  await query(worker, `ALTER DATABASE ${pathname.slice(1)} SET synchronous_commit = off`);
  await joinCluster(url);
  const { status, stderr } = await run(['migrate', '--database', url]);
  assert.equal(status, 1);
  assert.match(stderr, new RegExp(`${host}: .* runs with synchronous_commit = off`));
});

it('Citus: refuses a worker without full_page_writes', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  const [worker = ''] = onWorkers(url);
  const server = new URL(worker);
  server.pathname = '/postgres'; // the database of the test is dropped before the setting is reset
  const reload = async (change: string) => {
    await query(server.href, `ALTER SYSTEM ${change}`);
    await query(server.href, 'SELECT pg_reload_conf()');
  };
  t.after(() => reload('RESET full_page_writes'));
  await reload('SET full_page_writes = off');
  await until('a new connection has the setting', async () => {
    const [row] = await query(worker, 'SHOW full_page_writes');
    return (row as { full_page_writes: string }).full_page_writes === 'off'; // the only column
  });
  const { status, stderr } = await run(['migrate', '--database', url]);
  assert.equal(status, 1);
  assert.match(stderr, new RegExp(`${new URL(worker).host}: .* runs with full_page_writes = off`));
});

it('Citus: runs every statement about one store as one task on one machine', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  await runOk(['migrate', '--database', url]);
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const others: string[] = [];
    for (const { name, text } of [...ofRequests, ...ofCommands]) {
      await client.query(`PREPARE ${name} AS ${text}`);
      const { rows } = await client.query<{ types: string[] }>(
        `SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = lower('${name}')`,
      );
      const values = rows[0]?.types.map(sampleOf).join();
      const explained = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE ${name}(${values})`);
      const plan = JSON.stringify(explained.rows[0]['QUERY PLAN'][0]);
      const tasks = [...plan.matchAll(/"Task Count":(\d+)/g)].map(([, count]) => count);
      if (!isDeepStrictEqual(tasks, ['1'])) others.push(name);
    }
    assert.deepEqual(others, []);
  } finally {
    await client.end();
  }
});

/** A sample value of a type, in SQL. */
function sampleOf(type: string): string {
  if (type === 'bytea') return String.raw`'\x00'`;
  if (type.endsWith('[]')) return "'{1}'";
  return "'1'";
}
