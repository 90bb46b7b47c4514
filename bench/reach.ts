/**
 * The time of a page by the number of owners that it merges, and how long it holds the event loop at a time, without
 * HTTP, on each storage. The pages begin at cursors all over the store and are never cached.
 *
 *   node bench/reach.ts
 */
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import type { Caller, Reach } from '../src/access.ts';
import { defaultFields } from '../src/plant-json.ts';
import { PostgresStorage } from '../src/postgres/storage.ts';
import { SqliteStorage } from '../src/sqlite/storage.ts';
import type { Storage } from '../src/storage.ts';
import { credentialOf } from '../src/token.ts';
import { median, formatNumber, table } from './figures.ts';
import { Postgres } from './postgres.ts';
import { schemas } from './schemas.ts';
import { makeTokens, SqliteStore } from './seed.ts';
import { temporaryFolder } from './workspace.ts';

const plants = 1_000_000;
/** If 1,000 owners in reach have few of the plants, a page merges theirs; else it reads the list of the store. */
const populations = [
  { plants, users: 2_000 },
  { plants, users: 20_000 },
];
const limits = [20, 100, 1_000];
const rounds = 100;

for (const population of populations) {
  const folder = temporaryFolder();
  const { tokens } = makeTokens(folder, 'sqlite', population);
  {
    const path = join(folder, 'plants.db');
    new SqliteStore(path, schemas.service, population).fill(tokens);
    await using storage = new SqliteStorage(path, { create: false });
    await measure('SQLite', storage, tokens, population.users);
  }
  {
    await using server = await Postgres.start();
    const seeded = await server.seed(folder, 'postgres', population);
    await using storage = new PostgresStorage(seeded.service.address);
    await measure(await server.version(), storage, seeded.tokens, population.users);
  }
}

async function measure(
  name: string,
  storage: Storage,
  tokens: readonly string[],
  users: number,
): Promise<void> {
  const callers: Caller[] = [];
  for (const token of tokens.slice(0, 1_000)) callers.push(await callerOf(storage, token));
  const [first] = callers;
  if (first === undefined) throw new Error('there are no users');
  const owners = callers.map(({ user }) => user).toSorted((a, b) => a - b);
  const reaches: Record<string, Reach> = { 'the whole store': 'all' };
  for (const count of [1, 2, 10, 100, 1_000]) reaches[`owners: ${count}`] = owners.slice(0, count);
  const times = new Map<string, number[]>();
  const holds = new Map<string, number[]>();
  for (let round = 0; round < rounds; round++) {
    const after = 1 + Math.floor((round / rounds) * (plants / 2));
    for (const [reached, read] of Object.entries(reaches)) {
      for (const limit of limits) {
        const query = { after, limit, fields: defaultFields };
        const { totalMs, holdMs } = await time(() => storage.listPlants({ ...first, read }, query));
        const key = `${reached} ${limit}`;
        times.set(key, [...(times.get(key) ?? []), totalMs]);
        holds.set(key, [...(holds.get(key) ?? []), holdMs]);
      }
    }
  }
  const print = (title: string, values: ReadonlyMap<string, readonly number[]>) => {
    const us = (reached: string, limit: number) =>
      formatNumber(1_000 * median(values.get(`${reached} ${limit}`) ?? []));
    const rows = Object.keys(reaches).map((reached) => [
      reached,
      ...limits.map((limit) => us(reached, limit)),
    ]);
    console.log(`${name}, ${formatNumber(users)} users, ${title}\n`);
    console.log(table(['Reach', ...limits.map((limit) => `${limit} plants`)], rows));
  };
  print('µs for a page', times);
  print('µs of its longest turn of the event loop', holds);
}

/** How long `work` takes, and how long it holds the event loop at a time. */
async function time(work: () => Promise<unknown>): Promise<{ totalMs: number; holdMs: number }> {
  await turn();
  const startedMs = performance.now();
  let holdMs = 0;
  let turnMs = startedMs;
  const endTurn = () => {
    holdMs = Math.max(holdMs, performance.now() - turnMs);
    turnMs = performance.now();
    next = setImmediate(endTurn);
  };
  let next = setImmediate(endTurn);
  await work();
  const totalMs = performance.now() - startedMs;
  await turn(); // the last turn of the work
  clearImmediate(next);
  return { totalMs, holdMs };
}

async function callerOf(storage: Storage, token: string): Promise<Caller> {
  const grant = await storage.identify(credentialOf(token));
  if (grant === undefined) throw new Error('the token is unknown');
  return grant.caller;
}
