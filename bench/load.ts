/**
 * Puts load on all systems in turn. In each round, every system gets the same requests for the same time.
 */
import { setTimeout } from 'node:timers/promises';
import { formatMeasured, medianOf, medianRatio, table } from './figures.ts';
import { cpuUs, peakMiB, resetPeak } from './proc.ts';
import type { Seeded } from './seed.ts';
import type { Running, SystemName } from './systems.ts';
import { wrk, type Load, type LoadResult } from './wrk.ts';

export interface Workload extends Pick<Load, 'requests' | 'connections'> {
  name: string;
}

export const workloads: readonly Workload[] = [
  { name: 'list-20', requests: 'list', connections: 32 },
  { name: 'random-page', requests: 'page', connections: 32 },
  { name: 'create-32', requests: 'create', connections: 32 },
  { name: 'create-256', requests: 'create', connections: 256 },
  { name: 'update', requests: 'update', connections: 32 },
  { name: 'delete', requests: 'delete', connections: 32 },
];

/** More than any system can delete in a second. */
const maxDeletesPerSecond = 60_000;

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
  peakMiB: number;
}

/** The result of one system in one round. */
export interface Round extends LoadResult {
  cpuUsPerRequest: number;
}

export async function measure(
  workload: Workload,
  all: readonly Running[],
  seeded: Seeded,
  { rounds, seconds }: Pace,
): Promise<Measured[]> {
  const systems = all.filter(({ requests }) => requests?.includes(workload.requests) ?? true);
  const results = systems.map((system) => ({ system, done: [] as Round[] }));
  for (const system of systems) {
    resetPeak(system.pid);
    await runRound(system, workload, seeded, Math.min(maxWarmUpSeconds, seconds), 0);
  }
  for (let seed = 1; seed <= rounds; seed++) {
    for (const { system, done } of results) {
      done.push(await runRound(system, workload, seeded, seconds, seed));
    }
  }

  return results.map(({ system: { name, pid }, done }) => {
    const ratioTo = (other: SystemName) => {
      const others = results.find(({ system }) => system.name === other)?.done ?? [];
      return medianRatio(done, others, (each) => each.requestsPerSecond);
    };
    return {
      workload: workload.name,
      system: name,
      requestsPerSecond: medianOf(done, (each) => each.requestsPerSecond),
      ratioTo: {
        bare: ratioTo('bare'),
        'synced log': ratioTo('synced log'),
        typical: ratioTo('typical'),
      },
      p50Ms: medianOf(done, (each) => each.p50Ms),
      p99Ms: medianOf(done, (each) => each.p99Ms),
      cpuUsPerRequest: medianOf(done, (each) => each.cpuUsPerRequest),
      peakMiB: peakMiB(pid),
    };
  });
}

/** Runs one round on one system. Afterwards, the store has the same plants as before. */
export async function runRound(
  system: Running,
  { requests, connections }: Workload,
  seeded: Seeded,
  seconds: number,
  seed: number,
): Promise<Round> {
  if (requests === 'delete') await system.store?.addDisposable(maxDeletesPerSecond * seconds);
  const beforeUs = cpuUs(system.pid);
  const result = await wrk(system, { requests, connections, seconds, seed }, seeded);
  const usedUs = cpuUs(system.pid) - beforeUs;
  await untilIdle(system.pid);
  if (requests === 'create' || requests === 'delete') await system.store?.trim();
  return { ...result, cpuUsPerRequest: usedUs / result.requests };
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
    ...[
      each.requestsPerSecond,
      each.ratioTo.bare,
      each.ratioTo['synced log'],
      each.ratioTo.typical,
      each.p50Ms,
      each.p99Ms,
      each.cpuUsPerRequest,
      each.peakMiB,
    ].map(formatMeasured),
  ]);
  return table(header, rows);
}
