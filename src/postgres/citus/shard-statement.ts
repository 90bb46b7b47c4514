/**
 * Reads of a store from the tables of its shard. On the node of the shard, they cost little more than without Citus.
 * Through Citus, each read would be planned again (decision 38).
 */
import { statementOf, type Row, type Statement } from '../../sql/statement.ts';
import { codeOf } from '../errors.ts';
import { Problem } from '../../problem.ts';
import { tablesOfStore } from './citus.ts';
import type { Shard } from './shard-map.ts';

const tableNames = new RegExp(`plant_store\\.(${tablesOfStore.join('|')})\\b`, 'g');

const statements = new WeakMap<Shard, Map<Statement, Statement>>();

/**
 * The same read from the tables of a shard; undefined if some of its tables are not known. The read fails on a node
 * that the shard has left, even while its tables remain there, and in another cluster with tables of the same numbers.
 */
export function onShard<R extends Row>(read: Statement<R>, shard: Shard): Statement<R> | undefined {
  if (shard.ids.size < tablesOfStore.length) return undefined;
  const ofShard = statements.get(shard) ?? new Map<Statement, Statement>();
  statements.set(shard, ofShard);
  const statement = ofShard.get(read) ?? statementOf(guarded(read.text, shard));
  ofShard.set(read, statement);
  return statement as Statement<R>; // it has the same columns
}

/** The condition is evaluated once, before any row is read. */
function guarded(text: string, { firstHash, lastHash, ids }: Shard): string {
  const read = new Set<number | undefined>();
  const ofShard = text.replaceAll(tableNames, (table: string, name: string) => {
    read.add(ids.get(name));
    return `${table}_${ids.get(name)} AS ${name}`;
  });
  return `
    SELECT * FROM (${ofShard}) AS rows
    WHERE (
      SELECT 1 / (count(*) = ${read.size})::integer FROM pg_catalog.pg_dist_shard
      JOIN pg_catalog.pg_dist_placement USING (shardid)
      JOIN pg_catalog.pg_dist_local_group USING (groupid)
      WHERE shardid IN (${[...read].join()})
        AND shardminvalue = '${firstHash}' AND shardmaxvalue = '${lastHash}'
    ) = 1`;
}

/** Whether the shard is not on this node, or cannot be read there by this name or this user. */
export function isElsewhere(error: unknown): boolean {
  const code = codeOf(error instanceof Problem ? error.cause : error) ?? '';
  return elsewhereCodes.test(code);
}

/**
 * The division by zero, missing tables and privileges, and a statement that is not prepared: if reads are sent
 * together, the first one prepares the statement for the others, and a missing table makes it fail.
 */
const elsewhereCodes = /^(?:22012|42|26000)/;
