/**
 * Time from the start of the command to the first authenticated response, on a store with all plants. Also the
 * idle memory of the server after that.
 */
import { setTimeout } from 'node:timers/promises';
import { medianOf, formatMeasured, table } from './figures.ts';
import { residentMiB } from './proc.ts';
import type { Seeded } from './seed.ts';
import { get, start, type System, type Systems } from './systems.ts';

const startsEach = 9;
const settleMs = 1_000;

export async function starts({ service, bare, typical }: Systems, seeded: Seeded): Promise<string> {
  const results = [service, bare, typical].map((system) => ({ system, all: [] as Start[] }));
  for (let at = 0; at < startsEach; at++) {
    for (const { system, all } of results) all.push(await started(system, seeded));
  }
  const rows = results.map(({ system, all }) => [
    system.name,
    formatMeasured(medianOf(all, ({ firstResponseMs }) => firstResponseMs)),
    formatMeasured(medianOf(all, ({ idleMiB }) => idleMiB)),
  ]);
  return table(['Start', 'First response after ms', 'Idle memory, MiB'], rows);
}

interface Start {
  firstResponseMs: number;
  idleMiB: number;
}

async function started(system: System, seeded: Seeded): Promise<Start> {
  const startedMs = performance.now();
  await using running = await start(system, seeded);
  await get(running, '/plants?limit=1', seeded.tokens[0]);
  const firstResponseMs = performance.now() - startedMs;
  await setTimeout(settleMs);
  return { firstResponseMs, idleMiB: residentMiB(running.pid) };
}
