/**
 * How much longer reads take while other clients write as fast as they can. Both load generators run on the last
 * core, so that they take CPU time from each other instead of from the server.
 */
import { setTimeout } from 'node:timers/promises';
import { medianOf, medianRatio, formatMeasured, table } from './figures.ts';
import type { Pace } from './load.ts';
import type { Seeded } from './seed.ts';
import { withRunning, type Running, type Systems } from './systems.ts';
import { wrk, type LoadResult, type Load } from './wrk.ts';

const reads = { requests: 'list', connections: 16 } as const;
const writes = { requests: 'create', connections: 32 } as const;

/** The writes begin this long before the reads, and end this long after them. */
const marginMs = 500;

interface Round {
  alone: LoadResult;
  under: LoadResult;
  written: LoadResult;
}

export async function readsUnderWrites(
  { service, typical }: Systems,
  seeded: Seeded,
  { rounds, seconds }: Pace,
): Promise<string> {
  return withRunning([service, typical], seeded, async (systems) => {
    const results = new Map(systems.map((system) => [system, [] as Round[]]));
    for (const system of systems) await wrk(system, { ...reads, seconds: 1, seed: 0 }, seeded);
    for (let seed = 1; seed <= rounds; seed++) {
      for (const [system, all] of results) {
        const load = { ...reads, seconds, seed };
        const alone = await wrk(system, load, seeded);
        all.push({ alone, ...(await underWrites(system, load, seeded)) });
        await system.store?.trim();
      }
    }
    return tableOf(results);
  });
}

async function underWrites(system: Running, load: Load, seeded: Seeded) {
  const writeSeconds = load.seconds + (2 * marginMs) / 1_000;
  const [written, under] = await Promise.all([
    wrk(system, { ...load, ...writes, seconds: writeSeconds }, seeded),
    setTimeout(marginMs).then(() => wrk(system, load, seeded)),
  ]);
  return { written, under };
}

function tableOf(results: Map<Running, Round[]>): string {
  const header = [
    'Reads under writes',
    'p50 ms alone',
    'p50 ms under writes',
    'p99 ms alone',
    'p99 ms under writes',
    'p99 ratio',
    'Reads/s under writes',
    'Writes/s',
  ];
  const rows = [...results].map(([{ name }, all]) => [
    name,
    formatMeasured(medianOf(all, ({ alone }) => alone.p50Ms)),
    formatMeasured(medianOf(all, ({ under }) => under.p50Ms)),
    formatMeasured(medianOf(all, ({ alone }) => alone.p99Ms)),
    formatMeasured(medianOf(all, ({ under }) => under.p99Ms)),
    formatMeasured(
      medianRatio(
        all.map(({ under }) => under.p99Ms),
        all.map(({ alone }) => alone.p99Ms),
      ),
    ),
    formatMeasured(medianOf(all, ({ under }) => under.requestsPerSecond)),
    formatMeasured(medianOf(all, ({ written }) => written.requestsPerSecond)),
  ]);
  return table(header, rows);
}
