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

/** The shard with the plants of a store, the worker that has it, and another one. */
export async function shardOf(url: string, store: number) {
  const [placed] = await query(
    url,
    `SELECT shardid AS id, nodeport AS port FROM pg_dist_shard_placement
     WHERE shardid = get_shard_id_for_distribution_column('plant_store.plants', ${store})`,
  );
  const { id, port } = placed as { id: string; port: number }; // the selected columns
  const machines = onWorkers(url).map((worker) => new URL(worker));
  const from = machines.find((machine) => machine.port === `${port}`);
  const to = machines.find((machine) => machine !== from);
  if (from === undefined || to === undefined) throw new Error('there are no two workers');
  return { id, from, to };
}

/** With the shards of the other tables of its stores. */
export async function moveShard(
  url: string,
  shard: string | number,
  from: URL,
  to: URL,
  mode: 'block_writes' | 'force_logical' = 'block_writes',
): Promise<void> {
  const places = [from, to].map(({ hostname, port }) => `'${hostname}', ${port}`).join();
  await query(url, `SELECT citus_move_shard_placement(${shard}, ${places}, '${mode}')`);
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
