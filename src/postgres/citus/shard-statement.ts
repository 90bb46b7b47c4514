/**
 * Reads of a store from the tables of its shard. On its own node, they cost little more than on a server without Citus,
 * which would plan each read anew (decision 39).
 */
import { statementOf, type Row, type Statement } from '../pool/connection.ts';
import { codeOf } from '../errors.ts';
import { Problem } from '../../problem.ts';
import { tablesOfStore } from './citus.ts';
import type { Shard } from './shard-map.ts';

const tableNames = new RegExp(`plant_store\\.(${tablesOfStore.join('|')})\\b`, 'g');

const statements = new WeakMap<Shard, Map<Statement, Statement>>();

/**
 * The same read of the tables of one shard; undefined if it has not all of them. It fails on a node that one of them has
 * left, whose tables can remain for a while, and in a cluster that has others by the same numbers.
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
 * The division by zero, missing tables and privileges, and a statement that is not prepared: of reads that were sent
 * together, a missing table fails the first one, which prepares it for the others.
 */
const elsewhereCodes = /^(?:22012|42|26000)/;
