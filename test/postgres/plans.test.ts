import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Client } from 'pg';
import { plans, type Statement } from '../../src/postgres/connection.ts';
import { listSql, stepSql } from '../../src/postgres/plants.ts';
import { isCitus } from '../support/citus.ts';
import { query } from '../support/postgres.ts';
import { testDatabase, type TestDatabase } from '../support/storages.ts';
import { ofCommands, ofRequests } from './statements.ts';

// Its machines plan for themselves.
const skip = isCitus && 'on Citus, cluster.citus.ts looks at the plans';

interface Node {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Cond'?: string;
  Plans?: Node[];
}

it(
  'PostgreSQL: every request is a range of an index of one store: no scan of a table, no sort',
  { skip },
  async (t) => {
    const database = await testDatabase(t, 'PostgreSQL');
    await migrated(database);
    for (const statement of [...ofRequests, ...ofCommands]) {
      const nodes = await planOf(database.url, statement);
      const types = nodes.map((node) => node['Node Type']);
      const shown = `${statement.name}: ${JSON.stringify(nodes)}`;
      assert.ok(!types.some((type) => /Seq|Bitmap|Sort|Hash|Merge/.test(type)), shown);
      for (const node of nodes.filter((one) => one['Node Type'].includes('Index'))) {
        assert.match(node['Index Cond'] ?? '', keyOf(node), shown);
      }
    }
  },
);

it('PostgreSQL: a list reads the index that is made for it, to its bounds', { skip }, async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  await migrated(database);
  const lists = [
    [listSql('store'), ['store = $1']],
    [listSql('storeTag'), ['store = $1', 'tag = $5']],
    [listSql('owner'), ['store = $1', 'owner = $5']],
    [stepSql, ['store = $1', 'owner = $5']],
  ] as const;
  for (const [statement, keys] of lists) {
    const nodes = await planOf(database.url, statement);
    const reads = nodes.filter((node) => node['Relation Name'] === 'plants');
    assert.equal(reads.length, 1);
    for (const { 'Index Cond': bounds = '' } of reads) {
      for (const bound of [...keys, 'id <= $3', 'id > ']) {
        assert.ok(bounds.includes(`(${bound}`), `${statement.name}: ${bounds}`);
      }
    }
  }
});

it('PostgreSQL: no index depends on how the system sorts text', async (t) => {
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
    { index: 'plant_store.plants_by_tag', collname: 'C' },
    { index: 'plant_store.store_names_pkey', collname: 'C' },
    { index: 'plant_store.users_store_name_key', collname: 'C' },
  ]);
});

async function migrated(database: TestDatabase): Promise<void> {
  await (await database.open())[Symbol.asyncDispose]();
}

/** The plan that is kept for all values, as a connection has it after some requests. */
async function planOf(url: string, { name, text }: Statement): Promise<Node[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`${plans}; SET plan_cache_mode = force_generic_plan`);
    await client.query(`PREPARE ${name} AS ${text}`);
    const values = Array.from(new Set(text.match(/\$\d/g)), () => 'NULL').join();
    const { rows } = await client.query(
      `EXPLAIN (FORMAT JSON) EXECUTE ${name}${values === '' ? '' : `(${values})`}`,
    );
    return all(rows[0]['QUERY PLAN'][0].Plan);
  } finally {
    await client.end();
  }
}

/** What an index of this table is searched by first. */
function keyOf(node: Node): RegExp {
  switch (node['Relation Name']) {
    case 'tokens':
      return /\bhash /;
    case 'store_names':
      return /\bname = /;
    default:
      return /\bstore = \$1/;
  }
}

function all(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(all)];
}
