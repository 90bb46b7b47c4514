/**
 * The gain from more processes: the service with one worker and with one for each core, in turn. The load
 * generator runs on the last core here too, and shares it with a worker. Over few connections it leaves more of that
 * core to the worker, so the CPU time of a request shows what a worker costs.
 */
import { availableParallelism } from 'node:os';
import { medianOf, medianRatio, formatMeasured, table } from './figures.ts';
import { runRound, workloads, type Pace, type Round } from './load.ts';
import type { Seeded } from './seed.ts';
import { withRunning, type Systems } from './systems.ts';

const counts = [1, availableParallelism()];
const chosen = ['list-20', 'random-page', 'create-32'];
const fewConnections = 4;

export async function workers(
  { service }: Systems,
  seeded: Seeded,
  { rounds, seconds }: Pace,
): Promise<string> {
  const rows: string[][] = [];
  const loads = workloads
    .filter(({ name }) => chosen.includes(name))
    .flatMap((workload) => [workload, { ...workload, connections: fewConnections }]);
  for (const workload of loads) {
    const results = counts.map((count) => ({ count, all: [] as Round[] }));
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
    const ratioToOne = (all: readonly Round[], figure: (each: Round) => number) =>
      formatMeasured(medianRatio(all.map(figure), results[0]?.all.map(figure) ?? []));
    for (const { count, all } of results) {
      rows.push([
        workload.name,
        String(workload.connections),
        String(count),
        formatMeasured(medianOf(all, (each) => each.requestsPerSecond)),
        formatMeasured(medianOf(all, (each) => each.p99Ms)),
        ratioToOne(all, (each) => each.requestsPerSecond),
        ratioToOne(all, (each) => each.cpuUsPerRequest),
      ]);
    }
  }
  const header = ['Workload', 'Connections', 'Workers', 'Requests/s', 'p99 ms'];
  return table([...header, 'Requests to one worker', 'CPU of a request to one worker'], rows);
}
