/**
 * The gain from more processes: the service with one worker and with one for each core, in turn. The load
 * generator runs on the last core here too, and shares it with a worker.
 */
import { availableParallelism } from 'node:os';
import { medianOf, medianRatio, formatMeasured, table } from './figures.ts';
import { runRound, workloads, type Pace } from './load.ts';
import type { Seeded } from './seed.ts';
import { withRunning, type Systems } from './systems.ts';

const counts = [1, availableParallelism()];
const chosen = ['list-20', 'random-page', 'create-32'];

export async function workers(
  { service }: Systems,
  seeded: Seeded,
  { rounds, seconds }: Pace,
): Promise<string> {
  const rows: string[][] = [];
  for (const workload of workloads.filter(({ name }) => chosen.includes(name))) {
    const results = counts.map((count) => ({
      count,
      all: [] as { requestsPerSecond: number; p99Ms: number }[],
    }));
    for (let seed = 1; seed <= rounds; seed++) {
      for (const { count, all } of results) {
        const args = (those: Seeded) => [...service.args(those), `--workers=${count}`];
        await withRunning([{ ...service, args }], seeded, async (running) => {
          for (const system of running) {
            await runRound(system, workload, seeded, 1, 0);
            all.push(await runRound(system, workload, seeded, seconds, seed));
          }
        });
      }
    }
    const rates = (at: number) => results[at]?.all.map((each) => each.requestsPerSecond) ?? [];
    for (const [at, { count, all }] of results.entries()) {
      rows.push([
        workload.name,
        String(count),
        formatMeasured(medianOf(all, (each) => each.requestsPerSecond)),
        formatMeasured(medianOf(all, (each) => each.p99Ms)),
        formatMeasured(medianRatio(rates(at), rates(0))),
      ]);
    }
  }
  return table(['Workload', 'Workers', 'Requests/s', 'p99 ms', 'To one worker'], rows);
}
