/**
 * What the service and its database servers use: CPU time, memory, disk, connections.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { query } from '../test/support/postgres.ts';
import { cpuUs, serverCpuUs, serverMiB, residentMiB } from './proc.ts';

/** Everything counts from the start of the servers. */
export interface Reading {
  atMs: number;
  /** By process. */
  cpuUs: Record<string, number>;
  walBytes: number;
  /** Blocks that the servers needed, and those that were in the shared buffers. */
  blocks: number;
  hits: number;
}

interface Node {
  name: string;
  url: string;
  pid: number;
}

const sampleEachMs = 1_000;
const service = 'the service';

export class Meter {
  /** By server. */
  readonly maxConnections = new Map<string, number>();
  readonly #isCitus: boolean;
  /** The coordinator first. */
  readonly #nodes: readonly Node[];
  readonly #servicePid: number;
  readonly #sampling: NodeJS.Timeout;

  private constructor(isCitus: boolean, nodes: readonly Node[], servicePid: number) {
    this.#isCitus = isCitus;
    this.#nodes = nodes;
    this.#servicePid = servicePid;
    // A server that is too busy to respond is sampled the next time.
    const sample = () => void this.#sampleConnections().catch(() => {});
    this.#sampling = setInterval(sample, sampleEachMs);
  }

  /** Measures the server of this database, or all servers of its Citus cluster. */
  static async of(url: string, servicePid: number): Promise<Meter> {
    const extensions = await query(url, `SELECT 1 FROM pg_extension WHERE extname = 'citus'`);
    const isCitus = extensions.length > 0;
    const nodes: Node[] = [];
    for (const host of isCitus ? await hostsOf(url) : [new URL(url).host]) {
      const nodeUrl = new URL(url);
      nodeUrl.host = host;
      const [row] = await query(nodeUrl.href, `SELECT current_setting('data_directory') AS folder`);
      const { folder } = row as { folder: string }; // the selected column
      const pid = parseInt(readFileSync(join(folder, 'postmaster.pid'), 'utf8'), 10);
      nodes.push({ name: host, url: nodeUrl.href, pid });
    }
    return new Meter(isCitus, nodes, servicePid);
  }

  /** The names of the service and of each server. */
  get processes(): string[] {
    return [service, ...this.#nodes.map(({ name }) => name)];
  }

  async read(): Promise<Reading> {
    const reading: Reading = {
      atMs: performance.now(),
      cpuUs: { [service]: cpuUs(this.#servicePid) },
      walBytes: 0,
      blocks: 0,
      hits: 0,
    };
    for (const { name, url, pid } of this.#nodes) {
      reading.cpuUs[name] = serverCpuUs(pid);
      const [row] = await query(
        url,
        `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal,
                blks_hit::float8 AS hits, (blks_hit + blks_read)::float8 AS blocks
         FROM pg_stat_database WHERE datname = current_database()`,
      );
      const { wal, hits, blocks } = row as { wal: number; hits: number; blocks: number };
      reading.walBytes += wal;
      reading.hits += hits;
      reading.blocks += blocks;
    }
    return reading;
  }

  /** MiB by process. A server's shared buffers count once. */
  async memory(): Promise<Record<string, number>> {
    return Object.fromEntries([
      [service, residentMiB(this.#servicePid)],
      ...this.#nodes.map(({ name, pid }) => [name, serverMiB(pid)]),
    ]);
  }

  /** Bytes of the plants with their indexes, and of the database with all that is in it, on all servers. */
  async diskBytes(): Promise<{ plants: number; all: number }> {
    const [first] = this.#nodes;
    const plantsSize = this.#isCitus ? 'citus_total_relation_size' : 'pg_total_relation_size';
    const [row] = await query(
      first?.url ?? '',
      `SELECT ${plantsSize}('plant_store.plants')::float8 AS plants`,
    );
    const { plants } = row as { plants: number }; // the selected column
    let all = 0;
    for (const { url } of this.#nodes) {
      const [size] = await query(
        url,
        'SELECT pg_database_size(current_database())::float8 AS bytes',
      );
      all += (size as { bytes: number }).bytes; // the selected column
    }
    return { plants, all };
  }

  stop(): void {
    clearInterval(this.#sampling);
  }

  /** Counts sessions of this database, without the one that counts. */
  async #sampleConnections(): Promise<void> {
    for (const { name, url } of this.#nodes) {
      const [row] = await query(
        url,
        `SELECT count(*)::integer FROM pg_stat_activity
         WHERE datname = current_database() AND backend_type = 'client backend'
           AND pid <> pg_backend_pid()`,
      );
      const { count } = row as { count: number }; // the selected column
      this.maxConnections.set(name, Math.max(count, this.maxConnections.get(name) ?? 0));
    }
  }
}

/** HOST:PORT of each machine of a Citus cluster, the coordinator first. */
async function hostsOf(url: string): Promise<string[]> {
  const rows = await query(
    url,
    `SELECT nodename || ':' || nodeport AS host FROM pg_dist_node ORDER BY groupid`,
  );
  return rows.map((row) => (row as { host: string }).host); // the selected column
}
