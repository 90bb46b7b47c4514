/**
 * Databases on a Citus cluster. PLANT_STORE_TEST_DATABASE is its coordinator, and
 * PLANT_STORE_TEST_CITUS_WORKERS lists its workers as comma-separated HOST:PORT. All servers must accept the
 * same user and password.
 */
import { query } from './postgres.ts';

const workers = (process.env['PLANT_STORE_TEST_CITUS_WORKERS'] ?? '').split(',').filter(Boolean);

export const isCitus = workers.length > 0;

/** The addresses of this database on the workers; none if the server is not Citus. */
export function onWorkers(url: string): string[] {
  return workers.map((worker) => {
    const workerUrl = new URL(url);
    workerUrl.host = worker;
    return workerUrl.href;
  });
}

/** The address of this database that lists all machines of the cluster, the coordinator first. */
export function peers(url: string): string {
  const hosts = [url, ...onWorkers(url)].map((database) => new URL(database).host);
  return url.replace(new URL(url).host, hosts.join());
}

/** HOST:PORT of the machine that has the store of this name, as the cluster names it. */
export async function machineOfStore(url: string, name: string): Promise<string> {
  const [found] = await query(
    url,
    `SELECT store FROM plant_store.named_stores WHERE name = '${name}'`,
  );
  const { store } = found as { store: string }; // the selected column
  const [placed] = await query(
    url,
    `SELECT nodename || ':' || nodeport AS machine FROM pg_dist_shard_placement
     WHERE shardid = get_shard_id_for_distribution_column('plant_store.plants', ${store})`,
  );
  return (placed as { machine: string }).machine; // the selected column
}

/** Makes a cluster of the existing databases on the coordinator and the workers. */
export async function joinCluster(url: string): Promise<void> {
  if (!isCitus) return;
  const all = [url, ...onWorkers(url)];
  for (const database of all) await query(database, 'CREATE EXTENSION citus');
  const [coordinator, ...others] = all.map((database) => {
    const { hostname, port } = new URL(database);
    return `'${hostname}', ${port}`;
  });
  await query(url, `SELECT citus_set_coordinator_host(${coordinator})`);
  for (const worker of others) await query(url, `SELECT citus_add_node(${worker})`);
}

/** Turns the cluster back into databases of plain PostgreSQL. */
export async function leaveCluster(url: string): Promise<void> {
  for (const worker of onWorkers(url)) {
    const { hostname, port } = new URL(worker);
    await query(url, `SELECT citus_remove_node('${hostname}', ${port})`);
  }
  for (const database of [url, ...onWorkers(url)]) await query(database, 'DROP EXTENSION citus');
}
