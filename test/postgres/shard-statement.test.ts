/**
 * The statements that read the tables of one shard.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { hashBigint } from '../../src/postgres/citus/hash.ts';
import { findSql } from '../../src/postgres/tables/plant-statements.ts';
import { tablesOfStore } from '../../src/postgres/citus/citus.ts';
import { ShardMap, type ShardRow } from '../../src/postgres/citus/shard-map.ts';
import { onShard } from '../../src/postgres/citus/shard-statement.ts';
import { ofShards } from './statements.ts';

const maxNameBytes = 63;
const one = hashBigint(1);
const [first, last] = [-(2 ** 31), 2 ** 31 - 1];

function shardOf(rows: readonly ShardRow[]) {
  const shard = new ShardMap(rows).shardOf(1);
  assert.ok(shard);
  return shard;
}

it('a name has one text, also after one of the tables was replaced', () => {
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

it('a store is not read by shard if a table is divided otherwise', () => {
  const rows = tablesOfStore.map((table, at): ShardRow => [table, first, last, 1, one, at + 1]);
  assert.ok(onShard(findSql, shardOf(rows)));
  const half = rows.map((row): ShardRow =>
    row[0] === 'plants' ? ['plants', 0, last, 1, one, 7] : row,
  );
  assert.equal(onShard(findSql, shardOf(half)), undefined);
});
