/**
 * How much longer the requests of other clients take while one client requests pages of 1,000 plants, 20 times as
 * often as its limit allows. Each round measures all three cases, one after the other. The first second of each is not
 * counted: connections are opened, and the noisy client uses up its full bucket.
 *
 *   node bench/noisy.ts [--limit 10]
 */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { formatNumber, formatRatio, median, medianRatio, table } from './figures.ts';
import { seed } from './seed.ts';
import { serviceAt, start, type Running } from './systems.ts';
import { temporaryFolder } from './workspace.ts';

const { values } = parseArgs({ options: { limit: { type: 'string', default: '10' } } });
const limit = Number(values.limit); // requests a second
const noiseTarget = '/plants?limit=1000';
const population = { plants: 100_000, users: 25 };
const quietTarget = '/plants?limit=20';
const quietEveryMs = 125; // of each other client
const seconds = 4;
const uncountedMs = 1_000;
const rounds = 5;

/** Where to send requests, and how many a second. */
interface Noise {
  address: string;
  token: string;
  perSecond: number;
}

/** The number of responses by status. */
type Counts = Record<string, number>;

async function main(): Promise<void> {
  const seeded = seed(temporaryFolder(), 'noisy', population);
  const executable = fileURLToPath(new URL('../bin/plant-store.js', import.meta.url));
  const system = serviceAt(executable);
  const limitedSystem = {
    ...system,
    args: () => [...system.args(seeded), `--rate-limit=${limit}/s`],
  };
  await using unlimited = await start(system, seeded);
  await using limited = await start(limitedSystem, seeded);
  const [noisy = '', ...quiet] = seeded.tokens;
  const cases = [
    { name: 'alone', service: limited, isNoisy: false, p99sMs: [] as number[] },
    { name: 'beside a client with a limit', service: limited, isNoisy: true, p99sMs: [] },
    { name: 'beside a client without one', service: unlimited, isNoisy: true, p99sMs: [] },
  ];
  for (const { service } of cases) await measure(service, quiet, 1); // warms up
  for (let round = 0; round < rounds; round++) {
    for (const { name, service, isNoisy, p99sMs } of cases) {
      const stop = isNoisy ? await startNoise(service, noisy) : async () => ({});
      const p99Ms = await measure(service, quiet, seconds);
      p99sMs.push(p99Ms);
      console.log(`${name}: p99 ${formatNumber(p99Ms)} ms; noise: ${JSON.stringify(await stop())}`);
    }
  }
  const alone = cases[0]?.p99sMs ?? [];
  const rows = cases.map(({ name, p99sMs }) => [
    name,
    formatNumber(median(p99sMs)),
    formatRatio(medianRatio(p99sMs, alone)),
  ]);
  console.log(`\n${table(['Other clients', 'p99 ms', 'Ratio'], rows)}`);
}

/** The 99th percentile of the time from when a request is due until its response has arrived. */
async function measure(
  { address }: Running,
  tokens: readonly string[],
  forSeconds: number,
): Promise<number> {
  const timesMs: number[] = [];
  const countedFromMs = performance.now() + uncountedMs;
  const endMs = countedFromMs + forSeconds * 1_000;
  const client = async (token: string, at: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const headers = { authorization: `Bearer ${token}` };
    let dueMs = performance.now() + (at * quietEveryMs) / tokens.length;
    for (; dueMs < endMs; dueMs += quietEveryMs) {
      await pause(Math.max(0, dueMs - performance.now()));
      const [response] = await once(
        request(address + quietTarget, { agent, headers }).end(),
        'response',
      );
      response.resume();
      await once(response, 'end');
      if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
      if (dueMs >= countedFromMs) timesMs.push(performance.now() - dueMs);
    }
    agent.destroy();
  };
  await Promise.all(tokens.map(client));
  return timesMs.toSorted((a, b) => a - b)[Math.floor(timesMs.length * 0.99)] ?? Number.NaN;
}

/** Resolves when there are responses. The result stops the noise. */
async function startNoise({ address }: Running, token: string): Promise<() => Promise<Counts>> {
  const noise: Noise = { address, token, perSecond: 20 * limit };
  const worker = new Worker(new URL(import.meta.url), { workerData: noise });
  await once(worker, 'message');
  return async () => {
    worker.postMessage('stop');
    const [counts] = await once(worker, 'message');
    await worker.terminate();
    return counts as Counts; // the second message of makeNoise()
  };
}

/** Sends requests at a steady rate. A connection that still waits for a response is skipped. */
async function makeNoise({ address, token, perSecond }: Noise): Promise<void> {
  const { hostname, port } = new URL(address);
  const bytes = `GET ${noiseTarget} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const counts: Counts = {};
  const connections = Array.from({ length: 100 }, () => {
    const connection = { socket: connect(Number(port), hostname), isWaiting: false };
    connection.socket.setEncoding('latin1').on('data', (chunk) => {
      const [, status] = /^HTTP\/1\.1 (\d+)/.exec(String(chunk)) ?? [];
      if (status !== undefined) counts[status] = (counts[status] ?? 0) + 1;
      if (String(chunk).endsWith('}') || String(chunk).endsWith(']')) connection.isWaiting = false;
    });
    return connection;
  });
  const startedMs = performance.now();
  let due = 0;
  setInterval(() => {
    const total = ((performance.now() - startedMs) / 1_000) * perSecond;
    for (const connection of connections) {
      if (due >= total) break;
      if (connection.isWaiting) continue;
      connection.isWaiting = true;
      connection.socket.write(bytes);
      due++;
    }
    due = Math.max(due, total - perSecond / 10); // what could not be sent is not made up for
    connections.push(...connections.splice(0, connections.length / 2));
  }, 2);
  while (Object.keys(counts).length === 0) await pause(10);
  parentPort?.postMessage('started');
  parentPort?.once('message', () => parentPort?.postMessage(counts));
}

if (isMainThread) await main();
else await makeNoise(workerData as Noise); // of startNoise()
