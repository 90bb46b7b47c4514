/**
 * What is specific to a Citus cluster: `npm run test:citus`, with the variables of test/support/citus.ts.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Client, type QueryResult } from 'pg';
import type { Problem } from '../../src/problem.ts';
import { scopes, type Caller } from '../../src/access/access.ts';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import type { Storage } from '../../src/storage.ts';
import { addToken, call } from '../support/app.ts';
import {
  isCitus,
  joinCluster,
  leaveCluster,
  moveShard,
  onWorkers,
  peers,
  shardOf,
} from '../support/citus.ts';
import { run, runOk, serve } from '../support/command.ts';
import { commitsOf } from '../support/commits.ts';
import { query } from '../support/postgres.ts';
import { testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';
import { ofCommands, ofRequests, ofShards } from './statements.ts';
import type { Row, Statement } from '../../src/sql/statement.ts';
import { sqlState } from '../../src/postgres/errors.ts';
import { ShardMap, shardSql } from '../../src/postgres/citus/shard-map.ts';
import { onShard } from '../../src/postgres/citus/shard-statement.ts';
import { identify } from '../support/tokens.ts';

assert.ok(isCitus, 'PLANT_STORE_TEST_CITUS_WORKERS names no workers');

/** How often a request of each kind is counted, with a new token each time. */
const rounds = 40;
const requestsEach = 10;
/** A connection reports after at most this time what it has done. */
const reportMs = 11_000;
/** The service has noticed after this time how the tables are divided. */
const locateMs = 6_000;
/** So many reads that each connection has several in flight. */
const burst = 1_000;
/** Among so many stores, some are on each worker. */
const storesToFind = 30;

const spread = [
  { name: 'plant_store.changes', by: 'store' },
  { name: 'plant_store.idempotency_keys', by: 'store' },
  { name: 'plant_store.migrations', by: '<none>' },
  { name: 'plant_store.named_stores', by: 'key' },
  { name: 'plant_store.plants', by: 'store' },
  { name: 'plant_store.retention', by: '<none>' },
  { name: 'plant_store.shares', by: 'store' },
  { name: 'plant_store.stores', by: 'store' },
  { name: 'plant_store.tokens', by: 'store' },
  { name: 'plant_store.users', by: 'store' },
  { name: 'plant_store.webhooks', by: 'store' },
];

async function callerIn(storage: Storage, store: string): Promise<Caller> {
  const { caller } = (await identify(storage, await addToken(storage, 'alice', { store }))) ?? {};
  assert.ok(caller);
  return caller;
}

function distributionOf(url: string): Promise<unknown[]> {
  return query(
    url,
    'SELECT table_name::text AS name, distribution_column AS by FROM citus_tables ORDER BY 1',
  );
}

it('Citus: migrate distributes a new schema over the machines, also if the address lists only workers', async (t) => {
  for (const addresses of [(url: string) => [url], onWorkers]) {
    const { url } = await testDatabase(t, 'PostgreSQL');
    const [address = ''] = addresses(url);
    await runOk(['migrate', '--database', address]);
    assert.deepEqual(await distributionOf(url), spread);
  }
});

/** Migrates with an address that is refused with this message. */
async function refused(address: string, message: RegExp): Promise<void> {
  const { status, stderr } = await run(['migrate', '--database', address]);
  assert.equal(status, 1);
  assert.match(stderr, message);
}

it('Citus: migrate names the coordinator if it does not respond', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  const [worker = ''] = onWorkers(url);
  await query(url, `SELECT citus_set_coordinator_host('127.0.0.1', 1)`);
  await refused(worker, /coordinator of the cluster, 127\.0\.0\.1:1, does not respond/);
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
  const { caller } = (await identify(again, token)) ?? {};
  assert.ok(caller);
  const { json } = await again.plants.list(caller, { after: 0, limit: 2_000, fields: ['id'] });
  assert.equal(json.split('},{').length, plants.length);
  const { id } = await again.plants.create(caller, { name: 'next' });
  assert.equal(id, plants.length + 1);
});

it('Citus: refuses a worker without durable commits', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  const [worker = ''] = onWorkers(url);
  const { host, pathname } = new URL(worker);
  await leaveCluster(url); // otherwise the setting would apply everywhere
  await query(worker, `ALTER DATABASE ${pathname.slice(1)} SET synchronous_commit = off`);
  await joinCluster(url);
  await refused(url, new RegExp(`${host}: .* runs with synchronous_commit = off`));
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
  await refused(url, new RegExp(`${server.host}: .* runs with full_page_writes = off`));
});

it('Citus: runs every statement about one store as one task on one machine', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  await runOk(['migrate', '--database', url]);
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const others: string[] = [];
    for (const statement of [...ofRequests, ...ofCommands]) {
      const plan = await explain(client, statement);
      const tasks = [...plan.matchAll(/"Task Count":(\d+)/g)].map(([, count]) => count);
      if (!isDeepStrictEqual(tasks, ['1'])) others.push(statement.text);
    }
    assert.deepEqual(others, []);
  } finally {
    await client.end();
  }
});

it('Citus: a shard that has moved is not read where it was, even if its tables remain there', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  await using before = new PostgresStorage(peers(url));
  await before.open();
  const caller = await callerIn(before, 'main');
  const query20 = { after: 0, limit: 20, fields: ['name'] } as const;
  await before.plants.create(caller, { name: 'first' });
  await before.plants.list(caller, query20);

  const { id, from, to } = await shardOf(url, caller.store);
  const reader = new Client({ connectionString: from.href });
  await reader.connect();
  try {
    // Citus cannot delete a table that somebody reads.
    await reader.query(`BEGIN; SELECT 1 FROM plant_store.plants_${id}`);
    await moveShard(url, id, from, to);
    await using after = new PostgresStorage(peers(url));
    await after.open();
    await after.plants.create(caller, { name: 'second' });
    const { json } = await before.plants.list(caller, query20);
    assert.equal(json, '{"name":"first"},{"name":"second"}');
    const { rows } = await reader.query(`SELECT name FROM plant_store.plants_${id}`);
    assert.deepEqual(rows, [{ name: 'first' }], 'the old table was there to be read');
  } finally {
    await reader.end();
  }
});

it('Citus: every read of a store can be sent to its shard, and is refused where a table of it is not', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  await runOk(['migrate', '--database', url]);
  const [from, to] = onWorkers(url);
  assert.ok(from && to);
  const client = new Client({ connectionString: from });
  await client.connect();
  const reader = new Client({ connectionString: from });
  await reader.connect();
  try {
    const { rows } = await client.query({ text: shardSql.text, rowMode: 'array' });
    const map = new ShardMap(
      rows.map((row: unknown[]) => [row[0], ...row.slice(1).map(Number)] as never),
    );
    const { rows: local } = await client.query<{ groupid: number }>(
      'SELECT groupid FROM pg_dist_local_group',
    );
    const stores = Array.from({ length: storesToFind * 10 }, (_, at) => at);
    const shards = stores.map((store) => map.shardOf(store));
    const here = shards.find((shard) => shard?.node === local[0]?.groupid);
    const elsewhere = shards.find((shard) => shard?.node !== local[0]?.groupid);
    assert.ok(here && elsewhere);
    // Another cluster can have a shard with this number and other rows.
    const ofOther = { ...here, firstHash: here.firstHash - 1 };
    const isElsewhere = { code: '22012' };
    for (const read of ofShards) {
      const statement: Statement | undefined = onShard<Row>(read, here);
      assert.ok(statement);
      for (const mode of ['custom', 'generic']) {
        await client.query(`SET plan_cache_mode = force_${mode}_plan`);
        const plan = await explain(client, statement);
        assert.doesNotMatch(plan, /Citus|Task Count/, statement.text);
        // Nothing is read, and no statement without rows succeeds, before the condition is checked.
        assert.match(
          plan,
          /^\{"Plan":\{"Node Type":"Result",[^{]*"One-Time Filter":/,
          statement.text,
        );
        await execute(client, statement);
      }
      const other: Statement | undefined = onShard<Row>(read, ofOther);
      assert.ok(other);
      await assert.rejects(execute(client, other), isElsewhere, statement.text);
      const remote: Statement | undefined = onShard<Row>(read, elsewhere);
      assert.ok(remote);
      await assert.rejects(execute(client, remote), { code: sqlState.undefinedTable });
    }

    const plants = here.ids.get('plants');
    assert.ok(plants);
    await reader.query(`BEGIN; SELECT 1 FROM plant_store.plants_${plants}`);
    await query(url, `SELECT update_distributed_table_colocation('plant_store.plants', 'none')`);
    await moveShard(url, plants, new URL(from), new URL(to));
    for (const read of ofShards) {
      const statement: Statement | undefined = onShard<Row>(read, here);
      assert.ok(statement);
      if (!read.text.includes('plant_store.plants')) await execute(client, statement);
      else await assert.rejects(execute(client, statement), isElsewhere, statement.text);
    }
  } finally {
    await reader.end();
    await client.end();
  }
});

it('Citus: many reads together find a shard that has moved, and whose old tables are gone', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  await using before = new PostgresStorage(peers(url));
  await before.open();
  const caller = await callerIn(before, 'main');
  const { id } = await before.plants.create(caller, { name: 'kept' });
  await using storage = new PostgresStorage(peers(url));
  await storage.open();
  const shard = await shardOf(url, caller.store);
  await moveShard(url, shard.id, shard.from, shard.to);
  await query(url, 'CALL citus_cleanup_orphaned_resources()');
  const reads = Array.from({ length: burst }, async () => storage.plants.find(caller, id));
  assert.ok((await Promise.all(reads)).every((plant) => plant?.name === 'kept'));
});

it('Citus: plants are found even if their table is divided otherwise than the others', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  await using storage = new PostgresStorage(peers(url));
  await storage.open();
  const plants: [caller: Caller, id: number][] = [];
  for (let at = 0; at < storesToFind / 3; at++) {
    const caller = await callerIn(storage, `store ${at}`);
    const { id } = await storage.plants.create(caller, { name: 'kept' });
    plants.push([caller, id]);
  }
  const found = async () =>
    Promise.all(plants.map(async ([caller, id]) => (await storage.plants.find(caller, id))?.name));
  const kept = plants.map(() => 'kept');
  assert.deepEqual(await found(), kept);
  await query(
    url,
    `SELECT alter_distributed_table('plant_store.plants', shard_count := 64, cascade_to_colocated := false)`,
  );
  assert.deepEqual(await found(), kept);
  await pause(locateMs);
  assert.deepEqual(await found(), kept);
});

it('Citus: a request uses the machine of its store, and no other', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  const machines = [url, ...onWorkers(url)];
  const database = new URL(url).pathname.slice(1);
  await query(url, `ALTER DATABASE ${database} SET citus.enable_stat_counters = on`); // on all
  await using storage = new PostgresStorage(peers(url));
  await storage.open();
  const { address } = await serve(t, [], { env: { PLANT_STORE_DATABASE: peers(url) } });
  const onEach = async (sql: string, inDatabase = database) =>
    Promise.all(
      machines.map(async (machine) => {
        const counted = new URL(machine);
        counted.pathname = `/${inDatabase}`;
        const [row] = await query(counted.href, sql);
        return Number((row as { count: string }).count); // the selected column
      }),
    );
  // Counted from another database, because counting is a transaction, too.
  const transactions = () =>
    onEach(
      `SELECT xact_commit AS count FROM pg_stat_database WHERE datname = '${database}'`,
      'postgres',
    );
  /** What the machines sent to each other. */
  const sent = () =>
    onEach(`SELECT query_execution_multi_shard + connection_establishment_succeeded
              + connection_establishment_failed + connection_reused AS count
            FROM citus_stat_counters WHERE name = '${database}'`);
  const used = new Set<number>();
  for (let at = 0; at < storesToFind && used.size < machines.length - 1; at++) {
    const tokens = await Promise.all(
      Array.from({ length: rounds }, () =>
        addToken(storage, 'alice', { store: `store ${at}`, scopes }),
      ),
    );
    await pause(reportMs);
    const [before, sentBefore] = [await transactions(), await sent()];
    for (const token of tokens) await sendEach(address, token);
    let counts: number[] = [];
    const most = () => Math.max(...counts);
    await until('every request is counted', async () => {
      counts = (await transactions()).map((count, index) => count - (before[index] ?? 0));
      return most() >= rounds * requestsEach;
    });
    t.diagnostic(`store ${at}: ${counts.join()} transactions`);
    const others = counts.toSpliced(counts.indexOf(most()), 1);
    // The service and Citus check each machine, a few times a second.
    assert.ok(Math.max(...others) < most() / 4, 'the others only got checks');
    assert.deepEqual(await sent(), sentBefore);
    used.add(counts.indexOf(most()));
  }
  assert.equal(used.size, machines.length - 1, 'stores of every worker were used');
});

/** Sends a request of every kind. */
async function sendEach(address: string, token: string): Promise<void> {
  const send = async (method: string, target: string, status: number, json?: unknown) => {
    const answer = await call(address + target, method, {
      token,
      ...(json !== undefined && { json }),
    });
    assert.equal(answer.status, status, `${method} ${target}: ${answer.text}`);
    return answer;
  };
  await send('GET', '/plants?limit=20', 200);
  await send('GET', '/plants', 200);
  const { headers } = await send('POST', '/plants', 201, { name: 'Fern' });
  const plant = headers.get('location') ?? '';
  await send('GET', plant, 200);
  await send('DELETE', plant, 204);
  await send('GET', '/bin', 200);
  await send('PUT', '/shares/bob', 201, { access: 'read' });
  await send('GET', '/shares', 200);
  await send('DELETE', '/shares/bob', 204);
  await send('GET', '/tokens', 200);
  await send('DELETE', '/token', 204);
}

it('Citus: commits changes to many stores with one transaction a node, without two phases', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  const { url } = database;
  await using storage = await database.open();
  const callers = await Promise.all(
    Array.from({ length: 60 }, (_, at) => callerIn(storage, `store ${at}`)),
  );
  /** The ids, or the kinds of problems. */
  const create = async (id?: number) => {
    const plant = { name: 'Fern', ...(id && { id }) };
    const created = callers.map((caller) =>
      storage.plants.create(caller, plant).then(
        (one) => one.id,
        ({ kind }: Problem) => kind,
      ),
    );
    return new Set(await Promise.all(created));
  };
  await create(); // so that the connections are open

  const before = await preparedOn(url);
  const { commits, writes } = await commitsOf(async () => {
    assert.deepEqual(await create(), new Set([2]));
    assert.deepEqual(await create(7), new Set([7]));
    assert.deepEqual(await create(), new Set([8]));
    assert.deepEqual(await create(7), new Set(['id-taken']));
  });
  assert.equal(writes, 4 * callers.length);
  assert.ok(commits <= 4 * 2 * onWorkers(url).length, `${commits} transactions`);
  const since = [...(await preparedOn(url))].filter((gid) => !before.has(gid));
  assert.deepEqual(since, []);
});

/** The two-phase commits of all nodes that are not cleaned up yet. Each stays for a minute. */
async function preparedOn(url: string): Promise<Set<string>> {
  const nodes = [url, ...onWorkers(url)];
  const rows = await Promise.all(
    nodes.map((node) => query(node, 'SELECT gid FROM pg_dist_transaction')),
  );
  return new Set((rows.flat() as { gid: string }[]).map(({ gid }) => gid));
}

/** The plan of a statement, as JSON. */
async function explain(client: Client, statement: Statement): Promise<string> {
  const { rows } = await execute(client, statement, 'EXPLAIN (FORMAT JSON)');
  return JSON.stringify(rows[0]['QUERY PLAN'][0]);
}

/** Prepares a statement if necessary, and runs it with sample values. */
async function execute(
  client: Client,
  { name, text }: Statement,
  command = '',
): Promise<QueryResult> {
  const typesSql = `SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = lower('${name}')`;
  const find = async () => (await client.query<{ types: string[] }>(typesSql)).rows[0];
  if ((await find()) === undefined) await client.query(`PREPARE ${name} AS ${text}`);
  const values = (await find())?.types.map(sampleOf).join();
  return client.query(`${command} EXECUTE ${name}(${values})`);
}

/** A sample value of a type, in SQL. */
function sampleOf(type: string): string {
  if (type === 'bytea') return String.raw`'\x00'`;
  if (type.endsWith('[]')) return "'{1}'";
  return "'1'";
}
