/**
 * The service as in production, with several processes on one database, and the faults that a test can inject.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import type { Storage } from '../../src/storage.ts';
import { runOk, serve, type Service } from './command.ts';
import { databaseFile } from './database.ts';
import { PostgresServer } from './postgres.ts';
import { Proxy } from './proxy.ts';
import { until } from './until.ts';

export interface Deployment {
  addresses: readonly string[];
  /** Opens the database directly, next to the service. */
  open: () => Promise<Storage>;
  /** Each can be repeated, and resolves when the service has recovered. */
  faults: Record<string, () => Promise<void>>;
  /** Keeps the database as it is now, while it is in use. */
  backUp?: () => Promise<void>;
  /** Restarts the service: on SQLite with the backup, otherwise on a copy of the database. Close what `open` has opened. */
  replace?: () => Promise<void>;
}

/** During a network fault, each connection is cut after at most this many bytes, until enough were cut. */
const maxBytesToLive = 40_000;
const cutsPerFault = 20;
/** Every other connection is slow, so that its data is out of date when it arrives. */
const maxLatencyMs = 5;
/** Maximum time until the database or the workers have recovered. */
const maxRecoveryMs = 30_000;

/** One service with several workers on one file. */
export async function workersOnSqlite(t: TestContext, workers: number): Promise<Deployment> {
  const { folder, path, url } = databaseFile(t);
  const backup = join(folder, 'plants.backup');
  const open = async () => new SqliteStorage(path, { create: true });
  const args = ['--workers', String(workers), '--database', url, '--log-level', 'silent'];
  let service = await serve(t, args);
  const { address } = service;
  const { port } = new URL(address);
  let turn = 0;
  return {
    addresses: [address],
    open,
    faults: {
      async 'kill a worker'() {
        // The service replaces the worker that was killed before.
        const areRunning = () => childrenOf(service).length === workers;
        await until('all workers are running', areRunning, maxRecoveryMs);
        killIfRunning(childrenOf(service)[turn++ % workers] ?? assert.fail());
      },
      async 'kill the service'() {
        const children = childrenOf(service);
        service.child.kill('SIGKILL'); // first, so that it does not replace its workers
        for (const pid of children) killIfRunning(pid);
        await service.stop('SIGKILL');
        service = await serve(t, [...args, '--port', port]);
      },
    },
    async backUp() {
      await runOk(['backup', backup, '--database', url]);
    },
    async replace() {
      await service.stop();
      await runOk(['restore', backup, '--database', url]);
      service = await serve(t, [...args, '--port', port]);
    },
  };
}

/** Processes that serve one database. */
export async function startReplicas(t: TestContext, count: number, database: string) {
  let url = database;
  const start = (port = '0') => {
    const env = { PLANT_STORE_DATABASE: url, PLANT_STORE_LOG_LEVEL: 'silent' };
    return serve(t, ['--port', port], { env });
  };
  const services: Service[] = await Promise.all(Array.from({ length: count }, () => start()));
  const addresses = services.map(({ address }) => address);
  const startAgain = async (at: number) => {
    services[at] = await start(new URL(addresses[at] ?? '').port);
  };
  let turn = 0;
  return {
    addresses,
    async killOne() {
      const at = turn++ % count;
      await services[at]?.stop('SIGKILL');
      await startAgain(at);
    },
    /** `copy` resolves to the address of the other database. */
    async moveTo(copy: () => Promise<string>) {
      await Promise.all(services.map((service) => service.stop()));
      url = await copy();
      await Promise.all(services.map((_, at) => startAgain(at)));
    },
  };
}

/** Replicas that reach one database over an unreliable network. */
export async function replicasOnPostgres(t: TestContext, replicas: number): Promise<Deployment> {
  const server = await PostgresServer.make();
  t.after(() => server[Symbol.asyncDispose]());
  const proxy = await Proxy.to(server.port);
  t.after(() => proxy[Symbol.asyncDispose]());
  let connections = 0;
  proxy.latencyMs = () => (connections++ % 2 === 0 ? 0 : Math.ceil(Math.random() * maxLatencyMs));
  let name = 'postgres';
  const service = await startReplicas(t, replicas, server.url(name, proxy.port));
  return {
    addresses: service.addresses,
    async open() {
      const storage = new PostgresStorage(server.url(name));
      await storage.open();
      return storage;
    },
    faults: {
      'kill a replica': () => service.killOne(),
      async 'crash a backend'() {
        // The server then ends all other backends and recovers.
        const [row] = await server.query(
          `SELECT pid FROM pg_stat_activity
           WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random()`,
        );
        killIfRunning((row as { pid: number }).pid);
        const responds = () =>
          server.query('SELECT 1').then(
            () => true,
            () => false,
          );
        await until('the server responds', responds, maxRecoveryMs);
      },
      async 'cut connections'() {
        const cuts = proxy.cuts + cutsPerFault;
        proxy.bytesToLive = () => Math.ceil(Math.random() * maxBytesToLive);
        proxy.cutAll();
        await until('enough connections are cut', () => proxy.cuts >= cuts, maxRecoveryMs);
        proxy.bytesToLive = () => Infinity;
        proxy.cutAll();
      },
      async 'restart the server'() {
        await server.stop('SIGQUIT');
        await server.start();
      },
    },
    async replace() {
      const [from, copy] = [server.url(name), 'copy'];
      await service.moveTo(async () => {
        await server.query(`CREATE DATABASE ${copy}`);
        await runOk(['copy', '--from', from, '--to', server.url(copy)]);
        name = copy;
        return server.url(name, proxy.port);
      });
    },
  };
}

/** The processes of running workers. */
function childrenOf({ child }: Service): number[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,comm='], { encoding: 'utf8' });
  return rows.split('\n').flatMap((row) => {
    const [pid, parent] = row.trim().split(/\s+/).map(Number);
    return parent === child.pid && pid !== undefined && !row.includes('<defunct>') ? [pid] : [];
  });
}

function killIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
