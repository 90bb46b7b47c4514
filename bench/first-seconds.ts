/**
 * The first two seconds of a fresh process under load, when code is not compiled yet and caches are empty.
 */
import { medianOf, formatMeasured, table } from './figures.ts';
import { runRound, workloads, type Pace } from './load.ts';
import type { Seeded } from './seed.ts';
import { withRunning, type Systems } from './systems.ts';

const seconds = 2;
const chosen = ['list-20', 'random-page', 'create-32'];

export async function firstSeconds(
  { service, bare, 'synced log': syncedLog }: Systems,
  seeded: Seeded,
  { rounds }: Pace,
): Promise<string> {
  const rows: string[][] = [];
  for (const workload of workloads.filter(({ name }) => chosen.includes(name))) {
    const isWrite = workload.requests === 'create';
    for (const system of [service, isWrite ? syncedLog : bare]) {
      const all: { p50Ms: number; p99Ms: number }[] = [];
      for (let seed = 1; seed <= rounds; seed++) {
        await withRunning([system], seeded, async ([running]) => {
          if (running !== undefined)
            all.push(await runRound(running, workload, seeded, seconds, seed));
        });
      }
      rows.push([
        workload.name,
        system.name,
        formatMeasured(medianOf(all, ({ p50Ms }) => p50Ms)),
        formatMeasured(medianOf(all, ({ p99Ms }) => p99Ms)),
      ]);
    }
  }
  return table(['First 2 s of a process', 'System', 'p50 ms', 'p99 ms'], rows);
}
