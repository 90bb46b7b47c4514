/**
 * Latency of a create without other load: one client, one create at a time. The lower limit is a synced commit
 * without HTTP plus a response without a storage.
 */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { openDatabase } from '../src/sqlite/file/open.ts';
import { makeToken } from '../src/access/token.ts';
import { median, medianRatio, formatMeasured, table } from './figures.ts';
import type { Pace } from './load.ts';
import { plantOf } from './plants.ts';
import { schemas, storeNumber } from './schemas.ts';
import { SqliteStore, type Seeded } from './seed.ts';
import { withRunning, type Systems } from './systems.ts';
import { wrk } from './wrk.ts';

const create = { requests: 'create', connections: 1 } as const;
const commitsEachRound = 1_000;
const floor = { plants: 100_000, users: 1_000 };

export async function loneCreate(
  { service, bare, typical }: Systems,
  folder: string,
  seeded: Seeded,
  { rounds, seconds }: Pace,
): Promise<string> {
  using database = floorDatabase(folder);
  const commits: number[] = [];
  const order = [service, bare, typical];
  const creates = new Map(order.map(({ name }) => [name, [] as number[]]));
  await withRunning(order, seeded, async (systems) => {
    for (const system of systems) await wrk(system, { ...create, seconds: 1, seed: 0 }, seeded);
    for (let seed = 1; seed <= rounds; seed++) {
      commits.push(commitMs(database, seed));
      for (const system of systems) {
        const { p50Ms } = await wrk(system, { ...create, seconds, seed }, seeded);
        creates.get(system.name)?.push(p50Ms);
        await system.store?.trim();
      }
    }
  });

  const sums = commits.map((ms, round) => ms + (creates.get('bare')?.[round] ?? Number.NaN));
  const row = (what: string, ms: readonly number[]) => [
    what,
    formatMeasured(median(ms)),
    formatMeasured(medianRatio(ms, sums)),
  ];
  return table(
    ['Lone create', 'p50 ms', 'To commit + bare'],
    [
      row('synced commit without HTTP', commits),
      ...[...creates].map(([name, ms]) => row(name, ms)),
    ],
  );
}

/** A separate file with the schema of the service, on the same disk. */
function floorDatabase(folder: string): DatabaseSync {
  const path = join(mkdtempSync(join(folder, 'floor-')), 'floor.db');
  new SqliteStore(path, schemas.service, floor).fill(
    Array.from({ length: floor.users }, () => makeToken(storeNumber)),
  );
  return openDatabase(path, { create: false });
}

/** The median time of an insert with a synced commit. */
function commitMs(database: DatabaseSync, round: number): number {
  const insert = database.prepare(
    'INSERT INTO plants (store, id, owner, tag, name) VALUES (1, :id, :owner, :tag, :name)',
  );
  const firstId = floor.plants + round * commitsEachRound;
  const times = Array.from({ length: commitsEachRound }, (_, at) => {
    const owner = 1 + Math.floor(Math.random() * floor.users);
    const plant = { id: firstId + at, owner, ...plantOf(firstId + at) };
    const startedMs = performance.now();
    database.exec('BEGIN IMMEDIATE');
    insert.run(plant);
    database.exec('COMMIT');
    return performance.now() - startedMs;
  });
  return median(times);
}
