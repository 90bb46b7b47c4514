/**
 * The service as it runs in earnest, several processes over one database, with all that may happen to it.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import type { TestContext } from 'node:test';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import type { Storage } from '../../src/storage.ts';
import { serve, type Service } from './command.ts';
import { databaseFile } from './database.ts';
import { PostgresServer } from './postgres.ts';
import { Proxy } from './proxy.ts';
import { until } from './until.ts';

export interface Struck {
  addresses: readonly string[];
  /** Opens the database beside the service. */
  open: () => Promise<Storage>;
  /** Each resolves when the service is there again, and can be repeated. */
  blows: Record<string, () => Promise<void>>;
}

/** While the network is bad, connections are cut after so many bytes, and this often. */
const bytesToLiveMax = 40_000;
/** Every other connection is slow, so that what it carries is out of date when it arrives. */
const latencyMsMax = 5;
const cutsEach = 20;
/** How long the database or the workers may take to be there again. */
const backMsMax = 30_000;

/** Workers of one service on one file. */
export async function workersOnSqlite(t: TestContext, workers: number): Promise<Struck> {
  const { path, url } = databaseFile(t);
  const open = async () => new SqliteStorage(path, { create: true });
  const args = ['--workers', String(workers), '--database', url, '--log-level', 'silent'];
  let service = await serve(t, args);
  const { address } = service;
  const { port } = new URL(address);
  let turn = 0;
  return {
    addresses: [address],
    open,
    blows: {
      async 'kill a worker'() {
        // The one that was killed before is replaced by then.
        const areThere = () => childrenOf(service).length === workers;
        await until('all workers are there', areThere, backMsMax);
        killIfThere(childrenOf(service)[turn++ % workers] ?? assert.fail());
      },
      async 'kill the service'() {
        const all = childrenOf(service);
        service.child.kill('SIGKILL'); // first, so that it does not replace the others
        for (const pid of all) killIfThere(pid);
        await service.stop('SIGKILL');
        service = await serve(t, [...args, '--port', port]);
      },
    },
  };
}

/** Replicas over one database, and an unreliable network between. */
export async function replicasOnPostgres(t: TestContext, replicas: number): Promise<Struck> {
  const server = await PostgresServer.make();
  t.after(() => server[Symbol.asyncDispose]());
  const proxy = await Proxy.to(server.port);
  t.after(() => proxy[Symbol.asyncDispose]());
  let connections = 0;
  proxy.latencyMs = () => (connections++ % 2 === 0 ? 0 : Math.ceil(Math.random() * latencyMsMax));
  const env = {
    PLANT_STORE_DATABASE: server.url('postgres', proxy.port),
    PLANT_STORE_LOG_LEVEL: 'silent',
  };
  const starts = Array.from({ length: replicas }, () => serve(t, [], { env }));
  const services: Service[] = await Promise.all(starts);
  const addresses = services.map(({ address }) => address);
  let turn = 0;
  return {
    addresses,
    async open() {
      const storage = new PostgresStorage(server.url());
      await storage.open();
      return storage;
    },
    blows: {
      async 'kill a replica'() {
        const at = turn++ % replicas;
        await services[at]?.stop('SIGKILL');
        const { port } = new URL(addresses[at] ?? '');
        services[at] = await serve(t, ['--port', port], { env });
      },
      async 'crash a backend'() {
        // The server ends all others too, and recovers.
        const [row] = await server.query(
          `SELECT pid FROM pg_stat_activity
           WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random()`,
        );
        killIfThere((row as { pid: number }).pid);
        const isBack = () => server.query('SELECT 1').then(yes, no);
        await until('the server is back', isBack, backMsMax);
      },
      async 'cut connections'() {
        const cuts = proxy.cuts + cutsEach;
        proxy.bytesToLive = () => Math.ceil(Math.random() * bytesToLiveMax);
        proxy.cutAll();
        await until('enough are cut', () => proxy.cuts >= cuts, backMsMax);
        proxy.bytesToLive = () => Infinity;
        proxy.cutAll();
      },
      async 'restart the server'() {
        await server.stop('SIGQUIT');
        await server.start();
      },
    },
  };
}

const yes = () => true;
const no = () => false;

/** Whether the system can tell which processes the workers are. */
export function canKillWorkers(): boolean {
  return spawnSync('ps', ['-A', '-o', 'pid=']).status === 0;
}

/** The processes of its workers that are alive. */
function childrenOf({ child }: Service): number[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,comm='], { encoding: 'utf8' });
  return rows.split('\n').flatMap((row) => {
    const [pid, parent] = row.trim().split(/\s+/).map(Number);
    return parent === child.pid && pid !== undefined && !row.includes('<defunct>') ? [pid] : [];
  });
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
