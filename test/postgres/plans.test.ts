import assert from 'node:assert/strict';
import { it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { Client } from 'pg';
import { plannerSettings, type Statement } from '../../src/postgres/pool/connection.ts';
import { listSql, mergeSql, scanStepSql } from '../../src/postgres/tables/plant-statements.ts';
import { shareSql } from '../../src/postgres/tables/shares.ts';
import { isCitus } from '../support/citus.ts';
import { query } from '../support/postgres.ts';
import { testDatabase, type TestDatabase } from '../support/storages.ts';
import { ofCommands, ofRequests } from './statements.ts';

// Its machines plan for themselves.
const skip = isCitus && 'on Citus, cluster.citus.ts checks the plans';

interface Node {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Cond'?: string;
  Filter?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  Plans?: Node[];
}

interface Explained {
  Plan: Node;
  /** The compilation, if there was any. */
  JIT?: object;
}

/** They sort what they have read, whose size is limited: some plants of each owner, a step, or the shares of a user. */
const sorts: readonly Statement[] = [mergeSql, ...Object.values(scanStepSql), shareSql.ofUser];

it(
  'PostgreSQL: every request reads a range of an index, without table scans or sorts',
  { skip },
  async (t) => {
    const database = await testDatabase(t, 'PostgreSQL');
    await migrated(database);
    for (const statement of [...ofRequests, ...ofCommands]) {
      const nodes = await planOf(database.url, statement);
      const types = nodes.map((node) => node['Node Type']);
      const shown = `${statement.text}: ${JSON.stringify(nodes)}`;
      const avoided = sorts.includes(statement)
        ? /Seq|Bitmap|Hash|Merge Join/
        : /Seq|Bitmap|Sort|Hash|Merge/;
      assert.ok(!types.some((type) => avoided.test(type)), shown);
      for (const node of nodes.filter((one) => one['Node Type'].includes('Index'))) {
        assert.match(node['Index Cond'] ?? '', keyOf(node), shown);
      }
    }
  },
);

it('PostgreSQL: a list uses its own index, with all bounds', { skip }, async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  await migrated(database);
  const within = (column: string, value: string) =>
    `(ROW(${column}, id) > ROW(${value}, $2)) AND (ROW(${column}, id) <= ROW(${value}, $3))`;
  const lists = [
    [listSql.store, '(id > $2) AND (id <= $3)'],
    [listSql.owner, within('owner', '$5')],
    [scanStepSql.tag, within('owner', 'reach.owner')],
    [scanStepSql.text, within('owner', 'reach.owner')],
  ] as const;
  for (const [statement, bounds] of lists) {
    const nodes = await planOf(database.url, statement);
    const reads = nodes.filter((node) => node['Relation Name'] === 'plants');
    assert.deepEqual(
      reads.map((node) => node['Index Cond']),
      [`((store = $1) AND ${bounds})`],
    );
  }
});

it(
  'PostgreSQL: plants are not filtered, even if all had the same owner and tag',
  { skip },
  async (t) => {
    const database = await testDatabase(t, 'PostgreSQL');
    await migrated(database);
    await query(
      database.url,
      `INSERT INTO plant_store.plants (store, id, owner, tag, name)
       SELECT 1, id, 1, '', 'Fern' FROM generate_series(1, 100000) AS id;
       ANALYZE plant_store.plants`,
    );
    const filtered: string[] = [];
    for (const statement of [...ofRequests, ...ofCommands]) {
      for (const node of await planOf(database.url, statement)) {
        const isOnePlant = /\bid = /.test(node['Index Cond'] ?? '');
        const isFiltered = node['Relation Name'] === 'plants' && node.Filter !== undefined;
        if (isFiltered && !isOnePlant) filtered.push(statement.text);
      }
    }
    assert.deepEqual(filtered, []);
  },
);

it(
  'PostgreSQL: a merge of owners reads one plant of each, and a few of those who come first',
  { skip },
  async (t) => {
    const database = await testDatabase(t, 'PostgreSQL');
    await migrated(database);
    const [owners, limit] = [100, 20];
    await query(
      database.url,
      `INSERT INTO plant_store.plants (store, id, owner, tag, name)
       SELECT 1, id, 1 + id % ${2 * owners}, '', 'Fern' FROM generate_series(1, 20000) AS id;
       ANALYZE plant_store.plants`,
    );
    const reach = Array.from({ length: owners }, (_, at) => at + 1).join();
    const plantsEach = 8;
    const values = ['1', '1000', '20000', String(limit), `'{${reach}}'`, String(plantsEach)];
    const nodes = await planOf(database.url, mergeSql, values);
    const reads = nodes.filter((node) => node['Relation Name'] === 'plants');
    const eachRows = reads[1]?.['Actual Rows'] ?? Infinity;
    assert.deepEqual(
      reads.map((node) => [node['Actual Loops'], node['Actual Rows']]),
      [
        [owners, 1],
        [limit, eachRows],
        [limit, 1],
      ],
    );
    assert.ok(eachRows <= plantsEach + 1, String(eachRows)); // before version 16, it reads one more
    assert.equal(nodes[0]?.['Actual Rows'], limit);
  },
);

it('PostgreSQL: no statement is compiled', { skip }, async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  await migrated(database);
  const [server] = await query(database.url, 'SELECT pg_jit_available() AS jit');
  if (!isDeepStrictEqual(server, { jit: true })) {
    t.skip('this server cannot compile statements; the one of the oldest version can');
    return;
  }
  const values = ['1', '0', '20000', '20', `'{1,2}'`, '20'];
  const { JIT } = await explain(database.url, mergeSql, values);
  assert.equal(JIT, undefined);
});

it('PostgreSQL: no index depends on the collation of the system', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  await migrated(database);
  const sorted = await query(
    database.url,
    `SELECT indexrelid::regclass::text AS index, collname
     FROM pg_index CROSS JOIN unnest(indcollation) AS used (oid)
          JOIN pg_collation ON pg_collation.oid = used.oid
          JOIN pg_class ON pg_class.oid = indexrelid
     WHERE relnamespace = 'plant_store'::regnamespace ORDER BY index`,
  );
  assert.deepEqual(sorted, [
    { index: 'plant_store.idempotency_keys_pkey', collname: 'C' },
    { index: 'plant_store.named_stores_by_name', collname: 'C' },
    { index: 'plant_store.named_stores_pkey', collname: 'C' },
    { index: 'plant_store.shares_by_user', collname: 'C' },
    { index: 'plant_store.shares_pkey', collname: 'C' },
    { index: 'plant_store.users_store_name_key', collname: 'C' },
  ]);
});

async function migrated(database: TestDatabase): Promise<void> {
  await (await database.open())[Symbol.asyncDispose]();
}

/** The plan that is kept for all values, as a connection has it after some requests; with some, it is run. */
async function planOf(
  url: string,
  statement: Statement,
  given?: readonly string[],
): Promise<Node[]> {
  return all((await explain(url, statement, given)).Plan);
}

async function explain(
  url: string,
  { name, text }: Statement,
  given?: readonly string[],
): Promise<Explained> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`${plannerSettings}; SET plan_cache_mode = force_generic_plan`);
    await client.query(`PREPARE ${name} AS ${text}`);
    const values = (given ?? Array.from(new Set(text.match(/\$\d+/g)), () => 'NULL')).join();
    const { rows } = await client.query(
      `EXPLAIN (ANALYZE ${given !== undefined}, FORMAT JSON) EXECUTE ${name}${values === '' ? '' : `(${values})`}`,
    );
    return rows[0]['QUERY PLAN'][0];
  } finally {
    await client.end();
  }
}

/** What an index of this table is searched by first. */
function keyOf(node: Node): RegExp {
  switch (node['Relation Name']) {
    case 'tokens':
      return /\bstore = \$1\) AND \((?:hash |user_id = )/;
    case 'named_stores':
      return /\bkey = \$1\) AND \(name = /;
    default:
      return /\bstore = \$1/;
  }
}

function all(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(all)];
}
