/**
 * What a Citus cluster needs beyond the SQL that all engines share. Its tables must be distributed, and the
 * settings of its workers must be checked: those of the coordinator do not apply to them.
 */
import { Refusal } from '../refusal.ts';
import { durabilitySettings, type Connection, type Statement } from './connection.ts';

const hasCitusSql: Statement = {
  name: 'has_citus',
  text: `SELECT 1 FROM pg_extension WHERE extname = 'citus'`,
};

async function isCitus(connection: Connection): Promise<boolean> {
  return (await connection.query(hasCitusSql, [])).length > 0;
}

/**
 * Tables and their distribution columns, referenced tables first. Add each table that a migration creates: one
 * that is missing here stays on the coordinator.
 */
const distribution = [
  ['migrations', undefined],
  ['store_names', 'name'],
  ['tokens', 'hash'],
  ['stores', 'store'],
  ['users', 'store'],
  ['shares', 'store'],
  ['plants', 'store'],
] as const;

/**
 * Distributes the tables of a Citus cluster that are not distributed yet, with their rows. Does nothing on other
 * engines. Only the coordinator accepts this. Several processes can do it concurrently.
 */
export async function distribute(connection: Connection): Promise<void> {
  if (!(await isCitus(connection))) return;
  for (const [table, column] of distribution) {
    const name = `plant_store.${table}`;
    // A table that a later migration creates does not exist yet.
    const isLocalSql: Statement = {
      name: `is_local_${table}`,
      text: `
        SELECT 1 FROM pg_class
        WHERE oid = to_regclass('${name}')
          AND oid NOT IN (SELECT table_name::oid FROM citus_tables)`,
    };
    const isLocal = async () => (await connection.query(isLocalSql, [])).length > 0;
    if (!(await isLocal())) continue;
    const colocation =
      column === 'store' && table !== 'stores' ? `, colocate_with => 'plant_store.stores'` : '';
    const statement =
      column === undefined
        ? `SELECT create_reference_table('${name}')`
        : `SELECT create_distributed_table('${name}', '${column}'${colocation})`;
    await connection.commandWithoutTimeouts(statement).catch(async (error: unknown) => {
      if (await isLocal()) throw error; // otherwise another process has just done it
    });
  }
}

/** Throws Refusal if a worker has switched off a durability setting: the workers store the plants. */
export async function refuseUnsafeWorkers(connection: Connection): Promise<void> {
  if (!(await isCitus(connection))) return;
  for (const setting of durabilitySettings) {
    const rows = await connection.query(
      {
        name: `workers_${setting}`,
        text: `
          SELECT nodename || ':' || nodeport
          FROM run_command_on_workers('SHOW ${setting}') WHERE success AND result = 'off'`,
      },
      [],
    );
    if (rows.length === 0) continue;
    const workers = rows.map(([worker]) => worker).join(', ');
    throw new Refusal(
      `${workers} of the cluster: ${setting} is off; Plant Store needs it on, so that acknowledged changes survive a crash.`,
    );
  }
}
