/**
 * What a Citus cluster needs beyond the SQL that all engines share: its tables are distributed, and its
 * workers asked what the coordinator cannot tell of them.
 */
import { Refusal } from '../refusal.ts';
import { durabilitySettings, type Connection, type Statement } from './connection.ts';

const hasCitus: Statement = {
  name: 'has_citus',
  text: `SELECT 1 FROM pg_extension WHERE extname = 'citus'`,
};

async function isCitus(connection: Connection): Promise<boolean> {
  return (await connection.query(hasCitus, [])).length > 0;
}

/**
 * Tables and what they are distributed by, referenced ones first; those after `stores` lie beside it. Add
 * each table that a migration creates: one that is missing here stays on the coordinator.
 */
const distribution = [
  ['migrations', undefined],
  ['store_names', 'name'],
  ['tokens', 'hash'],
  ['stores', 'store'],
  ['users', 'store'],
  ['plants', 'store'],
] as const;

/**
 * Spreads what is not yet spread over the machines of a Citus cluster, with all that it holds; nothing
 * on other engines. Through the coordinator: other nodes refuse it. Two at once do no harm.
 */
export async function distribute(connection: Connection): Promise<void> {
  if (!(await isCitus(connection))) return;
  for (const [table, column] of distribution) {
    const name = `plant_store.${table}`;
    const listed: Statement = {
      name: `is_distributed_${table}`,
      text: `SELECT 1 FROM citus_tables WHERE table_name = '${name}'::regclass`,
    };
    const isListed = async () => (await connection.query(listed, [])).length > 0;
    if (await isListed()) continue;
    const beside =
      column === 'store' && table !== 'stores' ? `, colocate_with => 'plant_store.stores'` : '';
    const statement =
      column === undefined
        ? `SELECT create_reference_table('${name}')`
        : `SELECT create_distributed_table('${name}', '${column}'${beside})`;
    await connection.longCommand(statement).catch(async (error: unknown) => {
      if (!(await isListed())) throw error; // otherwise another has just done it
    });
  }
}

/** The machines that hold the plants must keep what they acknowledge, as the coordinator must. */
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
    const machines = rows.map(([machine]) => machine).join(', ');
    throw new Refusal(
      `${machines} of the cluster: ${setting} must be on, to keep what is acknowledged.`,
    );
  }
}
