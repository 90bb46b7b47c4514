/**
 * Databases on a Citus cluster of one's own: PLANT_STORE_TEST_DATABASE is its coordinator, and
 * PLANT_STORE_TEST_CITUS_WORKERS names its workers, HOST:PORT with commas between, which take the same
 * user and password.
 */
import { query } from './postgres.ts';

const workers = (process.env['PLANT_STORE_TEST_CITUS_WORKERS'] ?? '').split(',').filter(Boolean);

export const isCitus = workers.length > 0;

/** The addresses of this database on the workers; none where the server is not Citus. */
export function onWorkers(url: string): string[] {
  return workers.map((worker) => {
    const there = new URL(url);
    there.host = worker;
    return there.href;
  });
}

/** Makes a cluster of the databases that are there on the coordinator and on the workers. */
export async function joinCluster(url: string): Promise<void> {
  if (!isCitus) return;
  const all = [url, ...onWorkers(url)];
  for (const one of all) await query(one, 'CREATE EXTENSION citus');
  const [coordinator, ...others] = all.map((one) => {
    const { hostname, port } = new URL(one);
    return `'${hostname}', ${port}`;
  });
  await query(url, `SELECT citus_set_coordinator_host(${coordinator})`);
  for (const worker of others) await query(url, `SELECT citus_add_node(${worker})`);
}

/** Makes databases of plain PostgreSQL of them again. */
export async function leaveCluster(url: string): Promise<void> {
  for (const worker of onWorkers(url)) {
    const { hostname, port } = new URL(worker);
    await query(url, `SELECT citus_remove_node('${hostname}', ${port})`);
  }
  for (const one of [url, ...onWorkers(url)]) await query(one, 'DROP EXTENSION citus');
}
