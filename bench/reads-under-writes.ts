/**
 * How much longer reads take while other clients write as fast as they can. Both load generators run on the last
 * core, so that they take CPU time from each other instead of from the server.
 */
import { setTimeout } from 'node:timers/promises';
import { formatMeasured, medianOf, table } from './figures.ts';
import type { Pace } from './load.ts';
import type { Seeded } from './seed.ts';
import type { Running } from './systems.ts';
import { wrk, type Load, type LoadResult } from './wrk.ts';

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
  all: readonly Running[],
  seeded: Seeded,
  { rounds, seconds }: Pace,
): Promise<string> {
  const systems = all.filter(({ name }) => name === 'service' || name === 'typical');
  const results = systems.map((system) => ({ system, done: [] as Round[] }));
  for (const system of systems) await wrk(system, { ...reads, seconds: 1, seed: 0 }, seeded);
  for (let seed = 1; seed <= rounds; seed++) {
    for (const { system, done } of results) {
      const load = { ...reads, seconds, seed };
      const alone = await wrk(system, load, seeded);
      done.push({ alone, ...(await underWrites(system, load, seeded)) });
      await system.store?.trim();
    }
  }
  const header = [
    'Reads under writes',
    'p50 ms alone',
    'p50 ms under writes',
    'p99 ms alone',
    'p99 ms under writes',
    'Reads/s under writes',
    'Writes/s',
  ];
  const rows = results.map(({ system, done }) => [
    system.name,
    ...[
      medianOf(done, ({ alone }) => alone.p50Ms),
      medianOf(done, ({ under }) => under.p50Ms),
      medianOf(done, ({ alone }) => alone.p99Ms),
      medianOf(done, ({ under }) => under.p99Ms),
      medianOf(done, ({ under }) => under.requestsPerSecond),
      medianOf(done, ({ written }) => written.requestsPerSecond),
    ].map(formatMeasured),
  ]);
  return table(header, rows);
}

async function underWrites(system: Running, load: Load, seeded: Seeded) {
  const writeSeconds = load.seconds + (2 * marginMs) / 1_000;
  const [written, under] = await Promise.all([
    wrk(system, { ...load, ...writes, seconds: writeSeconds }, seeded),
    setTimeout(marginMs).then(() => wrk(system, load, seeded)),
  ]);
  return { written, under };
}
