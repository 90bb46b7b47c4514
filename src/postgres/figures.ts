/**
 * The size of a database, and of its tables, as PostgreSQL estimates them.
 */
import { versions, type Series } from '../metrics/metrics.ts';
import { sql } from '../sql/statement.ts';
import type { Servers } from './servers.ts';

/** NULL if the table was never vacuumed, and on a cluster, whose nodes have no estimate of all rows. */
const rowsOf = (table: string) => `(
  SELECT reltuples::float8 FROM pg_class
  WHERE oid = to_regclass('plant_store.${table}') AND reltuples >= 0
    AND to_regclass('pg_dist_partition') IS NULL)`;

const figuresSql = sql<readonly [version: string, ...(number | null)[]]>`
  SELECT current_setting('server_version'), pg_database_size(current_database())::float8,
    extract(epoch FROM now() - (
      SELECT min(xact_start) FROM pg_stat_activity
      WHERE backend_xmin IS NOT NULL AND datname = current_database()))::float8,
    ${['plants', 'tokens', 'changes'].map(rowsOf).join()}`;

/** On a cluster, of all nodes with stores: the sum of their sizes, and their oldest transaction. */
export async function readFigures(servers: Servers): Promise<readonly Series[]> {
  const reads = servers.withStores.map((server) => server.read(figuresSql, []));
  const rows = (await Promise.all(reads)).flat();
  const [[storage_version, , , plants, tokens, changes] = ['']] = rows;
  return [
    ['plant_store_info', 1, { ...versions, storage: 'postgres', storage_version }],
    ['plant_store_database_size_bytes', rows.reduce((sum, [, bytes]) => sum + (bytes ?? 0), 0)],
    ['plant_store_wal_oldest_reader_seconds', Math.max(...rows.map(([, , age]) => age ?? 0))],
    ['plant_store_plants', plants],
    ['plant_store_tokens', tokens],
    ['plant_store_changes', changes],
  ];
}
