/**
 * The port for metrics. With workers, the primary has it, and asks each of them. It adds nothing up, because a sum would
 * fall when a worker dies.
 */
import type { Worker } from 'node:cluster';
import { on, once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { gauges, processSeries } from '../../metrics/process.ts';
import { mediaType, textOf, type MetricName, type Series } from '../../metrics/text.ts';
import type { Storage, StorageFigures } from '../../storage.ts';
import { print } from '../output.ts';
import { hostAndPort, refuseListenError } from './listening.ts';
import type { ServeOptions } from './options.ts';

/** A storage or a worker that does not answer within these times is left out. */
const storageTimeoutMs = 500;
const workerTimeoutMs = 1_000;
/** There are few scrapers. */
const maxConnections = 10;

const { version } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
);
// An import would load every export of node:http, and for WebSocket a complete HTTP client.
const { createServer } = process.getBuiltinModule('node:http');

/** What a process measures: its own work, and what each process of the service measures alike. */
interface Measured {
  ofProcess: readonly Series[];
  ofService: readonly Series[];
}

/** Returns what the workers have measured that answer, by their numbers. */
type Measure = () => Promise<Iterable<readonly [slot: number, Measured]>>;

/** Listens until it is disposed, if there is a port for metrics. */
export async function serveMetrics(
  { metricsHost: host, metricsPort: port }: ServeOptions,
  measure: Measure,
): Promise<Disposable | undefined> {
  if (port === undefined) return undefined;
  const server = createServer((request, response) => {
    const respond = (status: number, text: string) =>
      response.writeHead(status, { 'content-type': mediaType }).end(text);
    if (request.url?.split('?')[0] !== '/metrics') respond(404, 'The metrics are at /metrics.\n');
    else void measure().then((all) => respond(200, textOf(merged(all))));
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

/** For a service without workers. */
export function measureAlone(storage: Storage): Measure {
  return async () => [[1, await measureHere(storage)]];
}

/** A worker answers whenever its primary asks. */
export function answerPrimary(worker: Worker, storage: Storage): void {
  worker.on('message', () => {
    void measureHere(storage).then((measured) => worker.send(measured, () => {}));
  });
}

/** For a primary. */
export async function measureWorkers(workers: ReadonlyMap<number, Worker>): ReturnType<Measure> {
  const answers = [...workers].map(async ([slot, worker]) => {
    const measured = await ask(worker).catch(() => undefined);
    return measured === undefined ? [] : [[slot, measured] as const];
  });
  return (await Promise.all(answers)).flat();
}

/** Undefined or an error if the worker does not answer. */
async function ask(worker: Worker): Promise<Measured | undefined> {
  if (!worker.isConnected()) return undefined;
  const messages = on(worker, 'message', { signal: AbortSignal.timeout(workerTimeoutMs) });
  worker.send('measure', () => {});
  for await (const [message] of messages) {
    if ('ofProcess' in message) return message; // a new worker also sends its address
  }
  return undefined;
}

async function measureHere(storage: Storage): Promise<Measured> {
  const timeout = wait(storageTimeoutMs, undefined, { ref: false });
  const figures = await Promise.race([storage.figures(), timeout]).catch(() => undefined);
  const ofService = figures === undefined ? [] : seriesOf(figures);
  const { certificateEndMs: endMs } = gauges;
  if (endMs !== undefined) {
    ofService.push(['plant_store_certificate_expiry_timestamp_seconds', endMs / 1_000]);
  }
  return { ofProcess: processSeries(), ofService };
}

const names = {
  walBytes: 'plant_store_wal_size_bytes',
  oldestReaderSeconds: 'plant_store_wal_oldest_reader_seconds',
  freeBytes: 'plant_store_disk_free_bytes',
  databaseBytes: 'plant_store_database_size_bytes',
  plants: 'plant_store_plants',
  tokens: 'plant_store_tokens',
  changes: 'plant_store_changes',
} as const satisfies Record<string, MetricName>;

function seriesOf({ engine: storage, version: storage_version, ...figures }: StorageFigures) {
  const labels = { version, node: process.versions.node, storage, storage_version };
  const series: Series[] = [['plant_store_info', 1, labels]];
  for (const [figure, name] of Object.entries(names)) {
    const value = figures[figure as keyof typeof names]; // its keys
    if (value !== undefined) series.push([name, value]);
  }
  return series;
}

/** The series of processes get the numbers of their workers. Of the others, one of each is enough. */
function merged(all: Iterable<readonly [slot: number, Measured]>): Series[] {
  const ofService = new Map<MetricName, Series>();
  const series: Series[] = [];
  for (const [worker, measured] of all) {
    for (const one of measured.ofService) ofService.set(one[0], one);
    for (const [name, value, labels] of measured.ofProcess) {
      series.push([name, value, { ...labels, worker }]);
    }
  }
  return [...series, ...ofService.values()];
}
