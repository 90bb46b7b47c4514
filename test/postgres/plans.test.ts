import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { Client } from 'pg';
import { maxId } from '../../src/plants/ids.ts';
import type { Statement } from '../../src/sql/statement.ts';
import { plannerSettings } from '../../src/postgres/pool/connection.ts';
import { listSql } from '../../src/postgres/tables/plants.ts';
import { logSql } from '../../src/sql/log.ts';
import { grantSql } from '../../src/sql/grants.ts';
import { shareSql } from '../../src/sql/shares.ts';
import { searchSql } from '../../src/sql/webhooks.ts';
import { isCitus } from '../support/citus.ts';
import { shared } from '../support/shared.ts';
import { testDatabase } from '../support/storages.ts';
import { ofCommands, ofRequests } from './statements.ts';

// Its machines plan for themselves.
const skip = isCitus && 'on Citus, cluster.citus.ts checks the plans';

interface Node {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Filter?: string;
  'Actual Rows'?: number;
  'Rows Removed by Filter'?: number;
  'Actual Loops'?: number;
  Plans?: Node[];
}

interface Explained {
  Plan: Node;
  /** The compilation, if there was any. */
  JIT?: object;
}

/** They sort what they have read, whose size is limited: some plants of each owner, or the shares of a user. */
const sorts: readonly Statement[] = [
  ...Object.values(listSql.owners),
  shareSql.ofUser,
  ...Object.values(grantSql),
  logSql.follow, // the changes of one step
];

/** A session in a database without rows, as a connection of the service is. */
const session = shared(async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  await (await database.open())[Symbol.asyncDispose]();
  const client = new Client({ connectionString: database.url });
  await client.connect();
  t.after(() => client.end());
  const { rows } = await client.query('SELECT pg_jit_available() AS jit'); // false after plannerSettings
  await client.query(`${plannerSettings}; SET plan_cache_mode = force_generic_plan`);
  return { client, canCompile: isDeepStrictEqual(rows, [{ jit: true }]) };
});

describe('PostgreSQL: the plans', { skip }, () => {
  it('of all requests read a range of an index, without table scans or sorts', async () => {
    for (const statement of [...ofRequests, ...ofCommands]) {
      const nodes = await planOf(statement);
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
  });

  it('of a list use its own index, with all bounds', async () => {
    const ofOwner = `(ROW(owner, id) > ROW($4, $2)) AND (ROW(owner, id) <= ROW($4, '${maxId}'::bigint))`;
    for (const [statement, bounds] of [
      [listSql.store.all, '(id > $2)'],
      [listSql.owner.all, ofOwner],
    ] as const) {
      const conditions = readsOf(await planOf(statement)).map((node) => node['Index Cond']);
      assert.deepEqual(conditions, [`((store = $1) AND ${bounds})`]);
    }
  });

  it('do not filter plants, even if all have the same owner and tag', async () => {
    await addPlants({ store: 1, count: 100_000, owners: 1 });
    const filtered: string[] = [];
    for (const statement of [...ofRequests, ...ofCommands]) {
      for (const node of readsOf(await planOf(statement))) {
        const isOnePlant = /\bid = /.test(node['Index Cond'] ?? '');
        if (node.Filter !== undefined && !isOnePlant) filtered.push(statement.text);
      }
    }
    assert.deepEqual(filtered, []);
  });

  it('of a merge of owners read one plant of each, and a few of those who come first', async () => {
    const [owners, limit] = [100, 20];
    await addPlants({ store: 2, count: 20_000, owners: 2 * owners });
    const reach = Array.from({ length: owners }, (_, at) => at + 1).join();
    const plantsEach = 8;
    const values = ['2', '1000', String(limit), `'{${reach}}'`, String(plantsEach)];
    const nodes = await planOf(listSql.owners.all, values);
    const reads = readsOf(nodes);
    const eachRows = reads[1]?.['Actual Rows'] ?? Infinity;
    assert.deepEqual(
      reads.map((node) => [node['Actual Loops'], node['Actual Rows']]),
      [
        [owners, 1],
        [limit, eachRows],
      ],
    );
    assert.ok(eachRows <= plantsEach + 1, String(eachRows)); // before version 16, it reads one more
    assert.equal(nodes[0]?.['Actual Rows'], limit);
  });

  it('of the search for webhooks read only a range of its index', async () => {
    await session().client.query(
      `INSERT INTO plant_store.webhooks (store, user_id, id, version, due_at, sent, state)
       SELECT 1, 1, id, 1, 0, 0, repeat('x', 200) FROM generate_series(10000, 19999) AS id;
       ANALYZE plant_store.webhooks`,
    );
    for (const [statement, values] of [
      [searchSql.endOfStep, [`'10500'`]],
      [searchSql.changed, [`'10500'`, `'11500'`, '256']],
      [searchSql.due, ['1', '1000', '16']],
    ] as const) {
      const nodes = await planOf(statement, values);
      const reads = nodes.filter((node) => node['Relation Name'] === 'webhooks');
      const shown = JSON.stringify(nodes);
      assert.deepEqual(
        reads.map((node) => node['Index Name']),
        ['webhooks_due'],
        shown,
      );
      assert.match(reads[0]?.['Index Cond'] ?? '', /^\(\(due_at [^)]*\) AND |^\(due_at /, shown);
      assert.ok(!nodes.some((node) => /Sort|Bitmap/.test(node['Node Type'])), shown);
      const read = (reads[0]?.['Actual Rows'] ?? 0) + (reads[0]?.['Rows Removed by Filter'] ?? 0);
      assert.ok(read <= 1_000, shown);
    }
  });

  it('are not compiled', async (t) => {
    if (!session().canCompile) {
      t.skip('this server cannot compile statements; the one of the oldest version can');
      return;
    }
    const { JIT } = await explain(listSql.owners.all, ['1', '0', '20', `'{1,2}'`, '20']);
    assert.equal(JIT, undefined);
  });
});

it('PostgreSQL: no index depends on the collation of the system', async () => {
  const { rows } = await session().client.query<{ index: string; collname: string }>(
    `SELECT indexrelid::regclass::text AS index, collname
     FROM pg_index CROSS JOIN unnest(indcollation) AS used (oid)
          JOIN pg_collation ON pg_collation.oid = used.oid
          JOIN pg_class ON pg_class.oid = indexrelid
     WHERE relnamespace = 'plant_store'::regnamespace ORDER BY index`,
  );
  const sorted = rows.map(
    ({ index, collname }) => `${index.replace('plant_store.', '')} ${collname}`,
  );
  assert.deepEqual(sorted, [
    'idempotency_keys_pkey C',
    'named_stores_by_name C',
    'named_stores_pkey C',
    'shares_by_user C',
    'shares_pkey C',
    'users_store_name_key C',
    'webhooks_due C',
    'webhooks_pkey C',
  ]);
});

async function addPlants(of: { store: number; count: number; owners: number }): Promise<void> {
  await session().client.query(
    `INSERT INTO plant_store.plants (store, id, owner, tag, name)
     SELECT ${of.store}, id, 1 + id % ${of.owners}, '', 'Fern' FROM generate_series(1, ${of.count}) AS id;
     ANALYZE plant_store.plants`,
  );
}

/** The plan that is kept for all values, as a connection has it after some requests; with some, it is run. */
async function planOf(statement: Statement, given?: readonly string[]): Promise<Node[]> {
  return all((await explain(statement, given)).Plan);
}

async function explain({ name, text }: Statement, given?: readonly string[]): Promise<Explained> {
  const values = (given ?? Array.from(new Set(text.match(/\$\d+/g)), () => 'NULL')).join();
  await session().client.query(`DEALLOCATE ALL; PREPARE ${name} AS ${text}`);
  const { rows } = await session().client.query(
    `EXPLAIN (ANALYZE ${given !== undefined}, FORMAT JSON) EXECUTE ${name}${values === '' ? '' : `(${values})`}`,
  );
  return rows[0]['QUERY PLAN'][0];
}

/** The nodes that read plants. */
function readsOf(nodes: readonly Node[]): Node[] {
  return nodes.filter((node) => node['Relation Name'] === 'plants');
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
