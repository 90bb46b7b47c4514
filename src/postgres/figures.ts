/**
 * The size of a database, and of its tables, as PostgreSQL estimates them.
 */
import { sql } from '../sql/statement.ts';
import type { StorageFigures } from '../storage.ts';
import type { Servers } from './servers.ts';

/** Of a table that was never vacuumed, PostgreSQL has no estimate, and of a distributed one a cluster has none. */
const rowsOf = (table: string) => `(
  SELECT reltuples::float8 FROM pg_class
  WHERE oid = to_regclass('plant_store.${table}') AND reltuples >= 0
    AND to_regclass('pg_dist_partition') IS NULL)`;

type Row = readonly [
  version: string,
  bytes: number,
  oldest: number | null,
  ...rows: readonly (number | null)[],
];

const figuresSql = sql<Row>`
  SELECT current_setting('server_version'), pg_database_size(current_database())::float8, (
    SELECT extract(epoch FROM now() - min(xact_start))::float8 FROM pg_stat_activity
    WHERE backend_xmin IS NOT NULL AND datname = current_database()),
    ${['plants', 'tokens', 'changes'].map(rowsOf).join()}`;

/** On a cluster, of all nodes with stores. */
export async function readFigures(servers: Servers): Promise<StorageFigures> {
  const ofServers = servers.withStores.map((server) => server.read(figuresSql, []));
  const rows = (await Promise.all(ofServers)).flat();
  const [[version, , , plants, tokens, changes] = ['', 0, 0]] = rows;
  const sum = rows.reduce((bytes, [, ofServer]) => bytes + ofServer, 0);
  return {
    engine: 'postgres',
    version,
    databaseBytes: sum,
    oldestReaderSeconds: Math.max(...rows.map(([, , oldest]) => oldest ?? 0)),
    plants: plants ?? undefined,
    tokens: tokens ?? undefined,
    changes: changes ?? undefined,
  };
}
