/**
 * Load on all systems in turn: in each round every system gets the same requests for the same time.
 */
import { medianOf, medianRatio, shown, table } from './figures.ts';
import { cpuUs, peakMiB, resetPeak } from './proc.ts';
import type { Seeded } from './seed.ts';
import type { Running, SystemName } from './systems.ts';
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

export interface Pace {
  rounds: number;
  seconds: number;
}

export interface Measured {
  workload: string;
  system: SystemName;
  requestsPerSecond: number;
  /** Of the requests per second. */
  ratioToBare: number;
  p50Ms: number;
  p99Ms: number;
  cpuUsPerRequest: number;
  peakMiB: number;
}

/** What one system did in one round. */
interface Round extends Answered {
  cpuUsPerRequest: number;
}

export async function measure(
  workload: Workload,
  systems: readonly Running[],
  seeded: Seeded,
  { rounds, seconds }: Pace,
): Promise<Measured[]> {
  const results = new Map(systems.map((system) => [system, [] as Round[]]));
  for (const { pid } of systems) resetPeak(pid);
  for (const system of systems) await loaded(system, workload, seeded, warmUpSeconds, 0);
  for (let seed = 1; seed <= rounds; seed++) {
    for (const [system, all] of results) {
      all.push(await loaded(system, workload, seeded, seconds, seed));
    }
  }

  const [, bare] = [...results].find(([{ name }]) => name === 'bare') ?? [];
  const rates = (all: readonly Round[]) => all.map((each) => each.requestsPerSecond);
  return [...results].map(([{ name, pid }, all]) => ({
    workload: workload.name,
    system: name,
    requestsPerSecond: medianOf(all, (each) => each.requestsPerSecond),
    ratioToBare: medianRatio(rates(all), rates(bare ?? [])),
    p50Ms: medianOf(all, (each) => each.p50Ms),
    p99Ms: medianOf(all, (each) => each.p99Ms),
    cpuUsPerRequest: medianOf(all, (each) => each.cpuUsPerRequest),
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
  const cpuUsBefore = cpuUs(system.pid);
  const answered = await wrk(system, { requests, connections, seconds, seed }, seeded);
  const cpuUsPerRequest = (cpuUs(system.pid) - cpuUsBefore) / answered.requests;
  if (['create', 'delete', 'mix'].includes(requests)) await system.store?.trim();
  return { ...answered, cpuUsPerRequest };
}

export function loadTable(all: readonly Measured[]): string {
  const header = [
    'Workload',
    'System',
    'Requests/s',
    'To bare',
    'p50 ms',
    'p99 ms',
    'CPU µs/request',
    'Peak MiB',
  ];
  const rows = all.map((each) => [
    each.workload,
    each.system,
    shown(each.requestsPerSecond),
    each.ratioToBare.toFixed(2),
    shown(each.p50Ms),
    shown(each.p99Ms),
    shown(each.cpuUsPerRequest),
    shown(each.peakMiB),
  ]);
  return table(header, rows);
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
