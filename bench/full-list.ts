/**
 * A list without a limit, for a user with a store of their own. Measures its time, and the memory that the server
 * needs in addition to its idle memory.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { median, formatMeasured, formatNumber, table } from './figures.ts';
import { peakMiB, resetPeak, residentMiB } from './proc.ts';
import { seed, type Seeded } from './seed.ts';
import { get, withRunning, type Running, type System, type Systems } from './systems.ts';
import { run } from './workspace.ts';

const collectionPlants = 100_000;
/** Only the service lists this many, and only if the measured stores are at least as large. */
const largeCollectionPlants = 1_000_000;
const listsEach = 7;

export async function fullList(
  { service, bare, typical }: Systems,
  folder: string,
  { plants }: Seeded,
): Promise<string> {
  const rows = await rowsOf(folder, collectionPlants, [service, bare, typical]);
  if (plants >= largeCollectionPlants) {
    rows.push(...(await rowsOf(folder, largeCollectionPlants, [service])));
  }
  return table(['Full list', 'Plants', 'ms', 'Peak above idle, MiB'], rows);
}

/** Lists from every system in turn. Each system runs in a new process, so its memory has no earlier peak. */
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
      for (const system of running) times.get(system.pid)?.push(await measureListMs(system, token));
    }
    return running.map(({ name, pid }) => [
      name,
      formatNumber(plants),
      formatMeasured(median(times.get(pid) ?? [])),
      formatMeasured(peakMiB(pid) - (idle.get(pid) ?? Number.NaN)),
    ]);
  });
  rmSync(own, { recursive: true });
  return rows;
}

/** Uses curl, because Node would take longer to read the response than the server to write it. */
async function measureListMs({ name, address }: Running, token: string): Promise<number> {
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
  if (status !== '200') throw new Error(`full list of ${name}: ${status}`);
  return Number(seconds) * 1_000;
}
