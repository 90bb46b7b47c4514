/**
 * What a Citus cluster needs beyond the SQL that all engines share: its tables must be distributed.
 */
import { sql } from '../../sql/statement.ts';
import type { Connection } from '../pool/connection.ts';
import { runUnlimited } from '../schema/unlimited.ts';

const hasCitusSql = sql`SELECT 1 FROM pg_extension WHERE extname = 'citus'`;

export async function isCitus(connection: Connection): Promise<boolean> {
  return (await connection.query(hasCitusSql, [])).length > 0;
}

/** Ends sessions on workers when they are idle, for which the role can have a time limit. */
export const endWorkerSessions = 'SET citus.max_cached_conns_per_worker = 0';

/**
 * Runs each statement of migrations in a transaction of its own, because Citus accepts one change of a schema at a time,
 * and distributes new tables. An interrupted migration runs again, so its statements must allow that. Splits at
 * semicolons and removes comments, so no literal can contain a semicolon or two hyphens.
 */
export async function runStatements(
  session: Connection,
  text: string,
  lockTimeoutMs: number,
): Promise<void> {
  const statements = text.replace(/--.*$/gm, '').split(';');
  for (const statement of statements.map((each) => each.trim()).filter(Boolean)) {
    await runUnlimited(session, statement, lockTimeoutMs);
  }
  await distribute(session);
}

/** The tables whose rows are on the node of their store. Add new ones, or they will not be distributed. */
export const tablesOfStore = [
  'stores',
  'users',
  'tokens',
  'shares',
  'plants',
  'changes',
  'idempotency_keys',
  'webhooks',
] as const;

/** Tables with one row, which every node has. */
const tablesOfNode = ['migrations', 'retention'];

/** All tables, referenced ones first. */
const tables = [...tablesOfNode, 'stores', 'named_stores', ...tablesOfStore.slice(1)];

function distributionSql(table: string): string {
  const name = `plant_store.${table}`;
  if (tablesOfNode.includes(table)) return `SELECT create_reference_table('${name}')`;
  const column = table === 'named_stores' ? 'key' : 'store'; // both have the same range
  const colocation = table === 'stores' ? '' : `, colocate_with => 'plant_store.stores'`;
  return `SELECT create_distributed_table('${name}', '${column}'${colocation})`;
}

/**
 * Distributes the tables of a Citus cluster that are not distributed yet, with their rows. Does nothing on other
 * engines. Only the coordinator accepts this, also from several processes concurrently.
 */
export async function distribute(connection: Connection): Promise<void> {
  if (!(await isCitus(connection))) return;
  for (const table of tables) {
    const name = `plant_store.${table}`;
    // A table that a later migration creates does not exist yet.
    const isLocalSql = sql`
      SELECT 1 FROM pg_class
      WHERE oid = to_regclass('${name}')
        AND oid NOT IN (SELECT logicalrelid FROM pg_dist_partition)`;
    const isLocal = async () => (await connection.query(isLocalSql, [])).length > 0;
    if (!(await isLocal())) continue;
    await runUnlimited(connection, distributionSql(table), 0).catch(async (error: unknown) => {
      if (await isLocal()) throw error; // otherwise another process has just done it
    });
  }
}
