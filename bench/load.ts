/**
 * Puts load on all systems in turn. In each round, every system gets the same requests for the same time.
 */
import { setTimeout } from 'node:timers/promises';
import { medianOf, medianRatio, formatMeasured, formatRatio, table } from './figures.ts';
import { cpuUs, cpuUsByThread, peakMiB, resetPeak } from './proc.ts';
import type { Seeded } from './seed.ts';
import type { Running, SystemName } from './systems.ts';
import { byThread, medianByThread, threadTable, type CpuUsByThread } from './threads.ts';
import { wrk, type LoadResult, type Load } from './wrk.ts';

export interface Workload {
  name: string;
  requests: Load['requests'];
  connections: number;
  /** Plants that are created for each second of a round, to be deleted: more than any system can delete. */
  disposablePerSecond?: number;
}

const maxDeletesPerSecond = 60_000;

export const workloads: readonly Workload[] = [
  { name: 'list-20', requests: 'list', connections: 32 },
  { name: 'list-20-of-any', requests: 'list_of_any', connections: 32 },
  { name: 'random-page', requests: 'page', connections: 32 },
  { name: 'create-32', requests: 'create', connections: 32 },
  { name: 'create-256', requests: 'create', connections: 256 },
  { name: 'update', requests: 'update', connections: 32 },
  {
    name: 'delete',
    requests: 'delete',
    connections: 32,
    disposablePerSecond: maxDeletesPerSecond,
  },
  {
    name: 'mix',
    requests: 'mix',
    connections: 32,
    disposablePerSecond: maxDeletesPerSecond / 50, // 2 % of its requests delete
  },
];

/** A process is idle if it uses so little CPU time in this time. */
const idleCheckMs = 100;
const maxIdleUs = 20_000;

/** Load before the first round, so that the code is compiled by then. */
const maxWarmUpSeconds = 2;

export interface Pace {
  rounds: number;
  seconds: number;
}

export interface Measured {
  workload: string;
  system: SystemName;
  requestsPerSecond: number;
  /** Requests per second relative to those of another system; NaN if that system was not measured. */
  ratioTo: Record<'bare' | 'synced log' | 'typical', number>;
  p50Ms: number;
  p99Ms: number;
  cpuUsPerRequest: number;
  /** CPU time for each request. */
  cpuUsByThread: CpuUsByThread;
  peakMiB: number;
}

/** The result of one system in one round. */
export interface Round extends LoadResult {
  cpuUsPerRequest: number;
  /** CPU time for each request. */
  cpuUsByThread: CpuUsByThread;
}

export async function measure(
  workload: Workload,
  all: readonly Running[],
  seeded: Seeded,
  { rounds, seconds }: Pace,
): Promise<Measured[]> {
  const systems = all.filter(({ requests }) => requests?.includes(workload.requests) ?? true);
  const results = new Map(systems.map((system) => [system, [] as Round[]]));
  for (const { pid } of systems) resetPeak(pid);
  const warmUpSeconds = Math.min(maxWarmUpSeconds, seconds);
  for (const system of systems) await runRound(system, workload, seeded, warmUpSeconds, 0);
  for (let seed = 1; seed <= rounds; seed++) {
    for (const [system, done] of results) {
      done.push(await runRound(system, workload, seeded, seconds, seed));
    }
  }

  const rates = new Map(
    [...results].map(([{ name }, done]) => [name, done.map((each) => each.requestsPerSecond)]),
  );
  const ratio = (name: SystemName, to: SystemName) =>
    medianRatio(rates.get(name) ?? [], rates.get(to) ?? []);
  return [...results].map(([{ name, pid }, done]) => ({
    workload: workload.name,
    system: name,
    requestsPerSecond: medianOf(done, (each) => each.requestsPerSecond),
    ratioTo: {
      bare: ratio(name, 'bare'),
      'synced log': ratio(name, 'synced log'),
      typical: ratio(name, 'typical'),
    },
    p50Ms: medianOf(done, (each) => each.p50Ms),
    p99Ms: medianOf(done, (each) => each.p99Ms),
    cpuUsPerRequest: medianOf(done, (each) => each.cpuUsPerRequest),
    cpuUsByThread: medianByThread(done),
    peakMiB: peakMiB(pid),
  }));
}

/** Runs one round on one system. Afterwards, the store has the same plants as before. */
export async function runRound(
  system: Running,
  { requests, connections, disposablePerSecond }: Workload,
  seeded: Seeded,
  seconds: number,
  seed: number,
): Promise<Round> {
  if (disposablePerSecond !== undefined)
    await system.store?.addDisposable(disposablePerSecond * seconds);
  const before = { all: cpuUs(system.pid), threads: cpuUsByThread(system.pid) };
  const result = await wrk(system, { requests, connections, seconds, seed }, seeded);
  const after = { all: cpuUs(system.pid), threads: cpuUsByThread(system.pid) };
  const eachRequest = (fromUs: number, toUs: number) => (toUs - fromUs) / result.requests;
  await untilIdle(system.pid);
  if (['create', 'delete', 'mix'].includes(requests)) await system.store?.trim();
  return {
    ...result,
    cpuUsPerRequest: eachRequest(before.all, after.all),
    cpuUsByThread: byThread((kind) => eachRequest(before.threads[kind], after.threads[kind])),
  };
}

/** Some servers go on with requests whose clients have left, which would slow down the next system. */
async function untilIdle(pid: number): Promise<void> {
  for (let before = cpuUs(pid); ; before = cpuUs(pid)) {
    await setTimeout(idleCheckMs);
    if (cpuUs(pid) - before < maxIdleUs) return;
  }
}

export function loadTable(all: readonly Measured[]): string {
  const header = [
    'Workload',
    'System',
    'Requests/s',
    'To bare',
    'To synced log',
    'To typical',
    'p50 ms',
    'p99 ms',
    'CPU µs/request',
    'Peak MiB',
  ];
  const rows = all.map((each) => [
    each.workload,
    each.system,
    formatMeasured(each.requestsPerSecond),
    formatRatio(each.ratioTo.bare),
    formatRatio(each.ratioTo['synced log']),
    formatRatio(each.ratioTo.typical),
    formatMeasured(each.p50Ms),
    formatMeasured(each.p99Ms),
    formatMeasured(each.cpuUsPerRequest),
    formatMeasured(each.peakMiB),
  ]);
  return table(header, rows);
}

/** A table of the CPU time of the service for each request, by thread. */
export function loadThreadTable(all: readonly Measured[]): string {
  const rows = all
    .filter(({ system }) => system === 'service')
    .map((each) => [[each.workload], each.cpuUsByThread] as const);
  return threadTable(['CPU µs/request of the service'], rows);
}

/** A table of the ratios of the figures in `larger` to those in `first`, for each workload and system. */
export function growthTable(first: readonly Measured[], larger: readonly Measured[]): string {
  const rows = larger.flatMap((each) => {
    const base = first.find(
      ({ workload, system }) => workload === each.workload && system === each.system,
    );
    if (base === undefined) return [];
    const ratios = [
      each.requestsPerSecond / base.requestsPerSecond,
      each.p50Ms / base.p50Ms,
      each.p99Ms / base.p99Ms,
      each.cpuUsPerRequest / base.cpuUsPerRequest,
      each.peakMiB / base.peakMiB,
    ];
    return [[each.workload, each.system, ...ratios.map((ratio) => ratio.toFixed(2))]];
  });
  const header = ['Workload', 'System', 'Requests/s', 'p50', 'p99', 'CPU/request', 'Peak memory'];
  return table(header, rows);
}
