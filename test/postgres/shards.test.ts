/**
 * How the rows of a store are found on a Citus cluster, without one.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { maxSafeNat, sample } from 'fast-check';
import { findSql } from '../../src/postgres/tables/plants.ts';
import { tablesOfStore } from '../../src/postgres/citus/citus.ts';
import { hashBigint, ShardMap, type ShardRow } from '../../src/postgres/citus/shard-map.ts';
import { onShard } from '../../src/postgres/citus/shard-statement.ts';
import { query } from '../support/postgres.ts';
import { postgresUrl } from '../support/postgres-for-all.ts';
import { ofShards } from './statements.ts';

const maxNameBytes = 63;
const one = hashBigint(1);
const [first, last] = [-(2 ** 31), 2 ** 31 - 1];

function shardOf(rows: readonly ShardRow[]) {
  const shard = new ShardMap(rows).shardOf(1);
  assert.ok(shard);
  return shard;
}

it('Citus: a name has one text, also after one of the tables was replaced', () => {
  const rows = tablesOfStore.map((table, at): ShardRow => [
    table,
    first,
    last,
    1,
    one,
    Number.MAX_SAFE_INTEGER - at,
  ]);
  const replaced = rows.map((row): ShardRow =>
    row[0] === 'plants' ? ([...row.slice(0, 5), 7] as never) : row,
  );
  const texts = new Map<string, string>();
  for (const statement of ofShards) {
    for (const each of [rows, replaced]) {
      const { name, text } = onShard(statement, shardOf(each)) ?? {};
      assert.ok(name !== undefined && text !== undefined);
      assert.ok(name.length <= maxNameBytes, name);
      assert.equal(texts.get(name) ?? text, text, statement.text);
      texts.set(name, text);
    }
  }
});

it('Citus: a store is not read by shard if a table is divided otherwise', () => {
  const rows = tablesOfStore.map((table, at): ShardRow => [table, first, last, 1, one, at + 1]);
  assert.ok(onShard(findSql, shardOf(rows)));
  const half = rows.map((row): ShardRow =>
    row[0] === 'plants' ? ['plants', 0, last, 1, one, 7] : row,
  );
  assert.equal(onShard(findSql, shardOf(half)), undefined);
});

it('Citus: a node has stores even if its only shard is that of one store', () => {
  const isolated = hashBigint(123_456_789_012);
  const map = new ShardMap([
    ['stores', first, isolated - 1, 1, one, 1],
    ['stores', isolated, isolated, 3, one, 2],
    ['stores', isolated + 1, last, 2, one, 3],
  ]);
  const nodes = [0, 1, 2, 3, 4].filter((node) => map.hasStores(node));
  assert.deepEqual(nodes, [1, 2, 3]);
});

it('Citus: hashes are those of the server, which place rows on the nodes of a cluster', async () => {
  const numbers = sample(maxSafeNat(), 1_000);
  const [server] = await query(
    await postgresUrl(),
    `SELECT array_agg(hashint8(n) ORDER BY at) AS numbers
     FROM unnest(ARRAY[${numbers.join()}]::bigint[]) WITH ORDINALITY AS given (n, at)`,
  );
  assert.deepEqual(server, { numbers: numbers.map(hashBigint) });
});
