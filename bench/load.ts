/**
 * Load on all systems in turn: in each round every system gets the same requests for the same time.
 */
import { medianOf, medianRatio, shown, shownRatio, table } from './figures.ts';
import { cpuUs, cpuUsByThread, peakMiB, resetPeak } from './proc.ts';
import type { Seeded } from './seed.ts';
import type { Running, SystemName } from './systems.ts';
import { byThread, medianByThread, threadTable, type CpuUsByThread } from './threads.ts';
import { wrk, type Answered, type Load } from './wrk.ts';

export interface Workload {
  name: string;
  requests: Load['requests'];
  connections: number;
  /** Plants to delete that are made for each second of a round: more than any system gets through. */
  fodderPerSecond?: number;
}

const deletesPerSecondMax = 60_000;

export const workloads: readonly Workload[] = [
  { name: 'list-20', requests: 'list', connections: 32 },
  { name: 'list-20-of-any', requests: 'list_of_any', connections: 32 },
  { name: 'random-page', requests: 'page', connections: 32 },
  { name: 'create-32', requests: 'create', connections: 32 },
  { name: 'create-256', requests: 'create', connections: 256 },
  {
    name: 'delete',
    requests: 'delete',
    connections: 32,
    fodderPerSecond: deletesPerSecondMax,
  },
  {
    name: 'mix',
    requests: 'mix',
    connections: 32,
    fodderPerSecond: deletesPerSecondMax / 50, // 2 % of its requests delete
  },
];

/** Before the rounds each system is loaded for so long, so that its code is compiled by then. */
const warmUpSeconds = 1;

/** The synced log has nothing to read. */
const syncedLogRequests: readonly Load['requests'][] = ['create', 'delete'];

export interface Pace {
  rounds: number;
  seconds: number;
}

export interface Measured {
  workload: string;
  system: SystemName;
  requestsPerSecond: number;
  /** Of the requests per second to those of another system; NaN if that one took no part. */
  ratioTo: Record<'bare' | 'synced log' | 'typical', number>;
  p50Ms: number;
  p99Ms: number;
  cpuUsPerRequest: number;
  /** For each request. */
  cpuUsByThread: CpuUsByThread;
  peakMiB: number;
}

/** What one system did in one round. */
export interface Round extends Answered {
  cpuUsPerRequest: number;
  /** For each request. */
  cpuUsByThread: CpuUsByThread;
}

export async function measure(
  workload: Workload,
  all: readonly Running[],
  seeded: Seeded,
  { rounds, seconds }: Pace,
): Promise<Measured[]> {
  const systems = all.filter(
    ({ name }) => name !== 'synced log' || syncedLogRequests.includes(workload.requests),
  );
  const results = new Map(systems.map((system) => [system, [] as Round[]]));
  for (const { pid } of systems) resetPeak(pid);
  for (const system of systems) await loaded(system, workload, seeded, warmUpSeconds, 0);
  for (let seed = 1; seed <= rounds; seed++) {
    for (const [system, done] of results) {
      done.push(await loaded(system, workload, seeded, seconds, seed));
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

/** One round on one system, which finds and leaves the store as it was filled. */
export async function loaded(
  system: Running,
  { requests, connections, fodderPerSecond }: Workload,
  seeded: Seeded,
  seconds: number,
  seed: number,
): Promise<Round> {
  if (fodderPerSecond !== undefined) await system.store?.addFodder(fodderPerSecond * seconds);
  const before = { all: cpuUs(system.pid), threads: cpuUsByThread(system.pid) };
  const answered = await wrk(system, { requests, connections, seconds, seed }, seeded);
  const after = { all: cpuUs(system.pid), threads: cpuUsByThread(system.pid) };
  const eachRequest = (fromUs: number, toUs: number) => (toUs - fromUs) / answered.requests;
  if (['create', 'delete', 'mix'].includes(requests)) await system.store?.trim();
  return {
    ...answered,
    cpuUsPerRequest: eachRequest(before.all, after.all),
    cpuUsByThread: byThread((kind) => eachRequest(before.threads[kind], after.threads[kind])),
  };
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
    shown(each.requestsPerSecond),
    shownRatio(each.ratioTo.bare),
    shownRatio(each.ratioTo['synced log']),
    shownRatio(each.ratioTo.typical),
    shown(each.p50Ms),
    shown(each.p99Ms),
    shown(each.cpuUsPerRequest),
    shown(each.peakMiB),
  ]);
  return table(header, rows);
}

/** CPU time of the service for each request. */
export function threadsOfLoad(all: readonly Measured[]): string {
  const rows = all
    .filter(({ system }) => system === 'service')
    .map((each) => [[each.workload], each.cpuUsByThread] as const);
  return threadTable(['CPU µs/request of the service'], rows);
}

/** What the figures of `larger` are to those of `first`, of each workload and system. */
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
