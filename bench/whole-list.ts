/**
 * A list without a limit, of a collector who has a store alone: how long it takes, and how much
 * memory the server needs for it above what it has when idle.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { median, shown, table } from './figures.ts';
import { peakMiB, resetPeak, residentMiB } from './proc.ts';
import { seed, type Seeded } from './seed.ts';
import { get, withRunning, type Running, type System, type Systems } from './systems.ts';
import { run } from './workspace.ts';

const collectionPlants = 100_000;
/** The service alone lists so many, where stores of this size are what is measured. */
const largeCollectionPlants = 1_000_000;
const listsEach = 7;

export async function wholeList(
  { service, bare, typical }: Systems,
  folder: string,
  { plants }: Seeded,
): Promise<string> {
  const rows = await rowsOf(folder, collectionPlants, [service, bare, typical]);
  if (plants >= largeCollectionPlants) {
    rows.push(...(await rowsOf(folder, largeCollectionPlants, [service])));
  }
  return table(['Whole list', 'Plants', 'ms', 'Peak above idle, MiB'], rows);
}

/** Lists of every system in turn, each system in a process that has answered nothing large before. */
async function rowsOf(folder: string, plants: number, systems: System[]): Promise<string[][]> {
  const own = mkdtempSync(join(folder, 'collection-'));
  const collection = seed(own, 'collection', { plants, users: 1 });
  const rows = await withRunning(systems, collection, async (running) => {
    const [token = ''] = collection.tokens;
    for (const system of running) await get(system, '/plants?limit=20', token);
    const idle = new Map(running.map(({ pid }) => [pid, residentMiB(pid)]));
    for (const { pid } of running) resetPeak(pid);
    const times = new Map(running.map(({ pid }) => [pid, [] as number[]]));
    for (let at = 0; at < listsEach; at++) {
      for (const system of running) times.get(system.pid)?.push(await listMs(system, token));
    }
    return running.map(({ name, pid }) => [
      name,
      shown(plants),
      shown(median(times.get(pid) ?? [])),
      shown(peakMiB(pid) - (idle.get(pid) ?? Number.NaN)),
    ]);
  });
  rmSync(own, { recursive: true });
  return rows;
}

/** By curl and not from here, where reading the answer would take longer than writing it. */
async function listMs({ name, address }: Running, token: string): Promise<number> {
  const printed = await run('curl', [
    '--silent',
    '--output',
    '/dev/null',
    '--write-out',
    '%{http_code} %{time_total}',
    '--header',
    `Authorization: Bearer ${token}`,
    `${address}/plants`,
  ]);
  const [status, seconds] = printed.split(' ');
  if (status !== '200') throw new Error(`whole list of ${name}: ${status}`);
  return Number(seconds) * 1_000;
}
