/**
 * Reads of a store from the tables of its shard. On its own node, they cost little more than on a server without Citus,
 * which would plan each read anew (decision 38).
 */
import { prepared, type Row, type Statement } from './connection.ts';
import { codeOf, sqlState } from './errors.ts';
import { Problem } from '../problem.ts';
import { tablesOfStore, type Shard } from './shard-map.ts';

const tableNames = new RegExp(`plant_store\\.(${tablesOfStore.join('|')})\\b`, 'g');

const statements = new WeakMap<Shard, Map<string, Statement>>();

/**
 * The same read of the tables of one shard; undefined if it has not all of them. It fails on a node that the shard has
 * left, whose tables can remain for a while.
 */
export function onShard<R extends Row>(
  { name, text }: Statement<R>,
  shard: Shard,
): Statement<R> | undefined {
  const id = shard.ids.get('stores');
  if (id === undefined || shard.ids.size < tablesOfStore.length) return undefined;
  const cached = statements.get(shard) ?? new Map<string, Statement>();
  statements.set(shard, cached);
  const statement = cached.get(name) ?? prepared(`${name}_${id}`, guarded(text, id, shard));
  cached.set(name, statement);
  return statement as Statement<R>; // it has the same columns
}

/** The condition is evaluated once, before any row is read. */
function guarded(text: string, id: number, { ids }: Shard): string {
  const ofShard = text.replaceAll(
    tableNames,
    (table: string, name: string) => `${table}_${ids.get(name)} AS ${name}`,
  );
  return `
    SELECT * FROM (${ofShard}) AS rows
    WHERE (
      SELECT 1 / count(*) FROM pg_catalog.pg_dist_placement
      JOIN pg_catalog.pg_dist_local_group USING (groupid)
      WHERE shardid = ${id}
    ) = 1`;
}

/** Whether the shard is not on this node, or cannot be read there by this name or this user. */
export function isElsewhere(error: unknown): boolean {
  const code = codeOf(error instanceof Problem ? error.cause : error) ?? '';
  return code === sqlState.divisionByZero || code.startsWith(accessClass);
}

/** Syntax errors and violations of access rules: missing tables and privileges. */
const accessClass = '42';
