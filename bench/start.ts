/**
 * From the command to the first answer to a token, on a store with all the plants; and the memory
 * of a server that then has nothing to do.
 */
import { setTimeout } from 'node:timers/promises';
import { medianOf, shown, table } from './figures.ts';
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
    shown(medianOf(all, ({ answeredMs }) => answeredMs)),
    shown(medianOf(all, ({ idleMiB }) => idleMiB)),
  ]);
  return table(['Start', 'First answer after ms', 'Idle memory, MiB'], rows);
}

interface Start {
  answeredMs: number;
  idleMiB: number;
}

async function started(system: System, seeded: Seeded): Promise<Start> {
  const sinceMs = performance.now();
  await using running = await start(system, seeded);
  await get(running, '/plants?limit=1', seeded.tokens[0]);
  const answeredMs = performance.now() - sinceMs;
  await setTimeout(settleMs);
  return { answeredMs, idleMiB: residentMiB(running.pid) };
}
