/**
 * The time of a page by the number of owners that it merges, without HTTP, on each storage. The pages begin at
 * cursors all over the store and are never cached.
 *
 *   node bench/reach.ts
 */
import { join } from 'node:path';
import type { Caller, Reach } from '../src/access.ts';
import { defaultFields } from '../src/plant.ts';
import { PostgresStorage } from '../src/postgres/storage.ts';
import { SqliteStorage } from '../src/sqlite/storage.ts';
import type { Storage } from '../src/storage.ts';
import { hashToken } from '../src/token.ts';
import { median, formatNumber, table } from './figures.ts';
import { Postgres } from './postgres.ts';
import { schemas } from './schemas.ts';
import { makeTokens, SqliteStore } from './seed.ts';
import { temporaryFolder } from './workspace.ts';

const population = { plants: 1_000_000, users: 2_000 };
const limits = [20, 100, 1_000];
const rounds = 100;

const folder = temporaryFolder();
{
  const path = join(folder, 'plants.db');
  const { tokens } = makeTokens(folder, 'sqlite', population);
  new SqliteStore(path, schemas.service, population).fill(tokens);
  await using storage = new SqliteStorage(path, { create: false });
  await measure('SQLite', storage, tokens);
}
{
  await using server = await Postgres.start();
  const { service, tokens } = await server.seed(folder, 'postgres', population);
  await using storage = new PostgresStorage(service.address);
  await measure(await server.version(), storage, tokens);
}

async function measure(name: string, storage: Storage, tokens: readonly string[]): Promise<void> {
  const callers: Caller[] = [];
  for (const token of tokens.slice(0, 1_000)) callers.push(await callerOf(storage, token));
  const [first] = callers;
  if (first === undefined) throw new Error('there are no users');
  const owners = callers.map(({ user }) => user).toSorted((a, b) => a - b);
  const reaches: Record<string, Reach> = { 'the whole store': 'all' };
  for (const count of [1, 2, 10, 100, 1_000]) reaches[`owners: ${count}`] = owners.slice(0, count);
  const times = new Map<string, number[]>();
  for (let round = 0; round < rounds; round++) {
    const after = 1 + Math.floor((round / rounds) * (population.plants / 2));
    for (const [reached, read] of Object.entries(reaches)) {
      for (const limit of limits) {
        const startedMs = performance.now();
        await storage.listPlants({ ...first, read }, { after, limit, fields: defaultFields });
        const key = `${reached} ${limit}`;
        times.set(key, [...(times.get(key) ?? []), performance.now() - startedMs]);
      }
    }
  }
  const us = (reached: string, limit: number) =>
    formatNumber(1_000 * median(times.get(`${reached} ${limit}`) ?? []));
  const rows = Object.keys(reaches).map((reached) => [
    reached,
    ...limits.map((limit) => us(reached, limit)),
  ]);
  console.log(`${name}, µs for a page\n`);
  console.log(table(['Reach', ...limits.map((limit) => `${limit} plants`)], rows));
}

async function callerOf(storage: Storage, token: string): Promise<Caller> {
  const grant = await storage.identify({ tokenHash: hashToken(token) });
  if (grant === undefined) throw new Error('the token is unknown');
  return grant.caller;
}
