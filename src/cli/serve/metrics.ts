/**
 * The port for metrics. With workers, the primary has it and asks each of them. It adds nothing up: a sum would fall when
 * a worker dies.
 */
import cluster, { type Worker } from 'node:cluster';
import { on, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { processSeries, textOf, type Series } from '../../metrics/metrics.ts';
import { lastBackupAt } from '../../sqlite/backup-folder.ts';
import type { Storage } from '../../storage.ts';
import { print } from '../output.ts';
import { hostAndPort, refuseListenError } from './listening.ts';
import type { ServeOptions } from './options.ts';

/** A storage, folder or worker that does not answer in time is left out. */
const storageTimeoutMs = 500;
const workerTimeoutMs = 1_000;
const mediaType = 'text/plain; version=0.0.4; charset=utf-8';
const maxConnections = 10; // there are few scrapers

// An import would load every export of node:http, and for WebSocket a complete HTTP client.
const { createServer } = process.getBuiltinModule('node:http');

/** Listens until it is disposed, if there is a port for metrics. A primary has no storage, and asks its workers. */
export async function serveMetrics(
  { metricsHost: host, metricsPort: port, backupDir: folder }: ServeOptions,
  storage?: Storage,
): Promise<Disposable | undefined> {
  if (port === undefined) return undefined;
  let answering: Promise<string> | undefined;
  const answer = async () => {
    const all = storage ? await measure(storage, 1) : await askWorkers();
    // Each worker measures the storage, and one of its series is enough.
    const different = new Map(all.map((one) => [JSON.stringify([one[0], one[2]]), one]));
    const lastBackup = folder === undefined ? undefined : await inTime(lastBackupAt(folder));
    const seconds = lastBackup && lastBackup.getTime() / 1_000;
    const name = 'plant_store_backup_last_verified_timestamp_seconds';
    answering = undefined;
    return textOf([...different.values(), [name, seconds]]);
  };
  const server = createServer(({ url = '' }, response) => {
    const isFound = url.split('?')[0] === '/metrics';
    const respond = (text: string) =>
      response.writeHead(isFound ? 200 : 404, { 'content-type': mediaType }).end(text);
    if (!isFound) respond('The metrics are at /metrics.\n');
    else void (answering ??= answer()).then(respond); // scrapes at the same time share one
  });
  server.maxConnections = maxConnections;
  const listening = once(server.listen({ host, port }), 'listening');
  await listening.catch(refuseListenError({ host, port }, '--metrics-'));
  const { address, port: actualPort } = server.address() as AddressInfo; // it listens on a port
  print(`Metrics: http://${hostAndPort(address, actualPort)}/metrics`);
  return {
    [Symbol.dispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A worker answers its primary. */
export function answerPrimary(worker: Worker, storage: Storage): void {
  worker.on('message', (slot: number) => {
    void measure(storage, slot).then((series) => worker.send(series, () => {}));
  });
}

async function measure(storage: Storage, worker: number): Promise<readonly Series[]> {
  const ofStorage = (await inTime(storage.figures())) ?? [];
  return [...processSeries(worker), ...ofStorage];
}

/** Undefined if it fails or takes too long: a disk or a server can hang. */
function inTime<T>(work: Promise<T>): Promise<T | undefined> {
  const timeout = wait(storageTimeoutMs, undefined, { ref: false });
  return Promise.race([work, timeout]).catch(() => undefined);
}

/** Their numbers are their places here, from 1 on. A new worker takes that of a dead one. */
const slots: Worker[] = [];

async function askWorkers(): Promise<Series[]> {
  for (const worker of Object.values(cluster.workers ?? {})) {
    if (worker === undefined || slots.includes(worker)) continue;
    const free = slots.findIndex((one) => one.isDead());
    slots[free === -1 ? slots.length : free] = worker;
  }
  const answers = slots.map((worker, at) => ask(worker, at + 1).catch(() => []));
  return (await Promise.all(answers)).flat();
}

/** Rejects if the worker does not answer in time. */
async function ask(worker: Worker, slot: number): Promise<readonly Series[]> {
  if (!worker.isConnected()) return [];
  const messages = on(worker, 'message', { signal: AbortSignal.timeout(workerTimeoutMs) });
  worker.send(slot, () => {});
  for await (const [message] of messages) if (Array.isArray(message)) return message;
  return []; // unless it is a new worker, which first sends its address
}
