/**
 * The time of the first page by the number of owners in reach, through HTTP. Before each request another user creates
 * a plant. The last column is for comparison: nothing is created before it.
 *
 *   node bench/first-page.ts
 */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { PostgresStorage } from '../src/postgres/storage.ts';
import { SqliteStorage } from '../src/sqlite/storage.ts';
import type { Storage } from '../src/storage.ts';
import { credentialOf } from '../src/token.ts';
import { formatNumber, formatRatio, median, table } from './figures.ts';
import { Postgres } from './postgres.ts';
import { seed, type Seeded } from './seed.ts';
import { serviceAt, start } from './systems.ts';
import { temporaryFolder } from './workspace.ts';

const population = { plants: 1_000_000, users: 2_000 };
const owners = [1, 10, 100, 1_000];
const limit = 20;
const rounds = 300;

const folder = temporaryFolder();
const executable = fileURLToPath(new URL('../bin/plant-store.js', import.meta.url));
{
  const seeded = seed(folder, 'sqlite', population);
  const path = seeded.service.address.replace(/^sqlite:/, '');
  await share(new SqliteStorage(path, { create: false }), seeded);
  await measure('SQLite', seeded);
}
{
  await using server = await Postgres.start();
  const seeded = await server.seed(folder, 'postgres', population);
  await share(new PostgresStorage(seeded.service.address), seeded);
  await measure(await server.version(), seeded);
}

/** Lets the first users reach as many owners as `owners` says, themselves included. */
async function share(opened: Storage, { tokens }: Seeded): Promise<void> {
  await using storage = opened;
  const grants = [];
  for (const token of tokens) {
    const grant = await storage.identify(credentialOf(token));
    if (grant === undefined) throw new Error('the token is unknown');
    grants.push(grant);
  }
  for (const [at, { userName: user }] of grants.slice(0, owners.length).entries()) {
    const others = grants.slice(owners.length, owners.length + (owners[at] ?? 0) - 1);
    for (const { caller, userName: owner } of others)
      await storage.share(caller.store, { owner, user, access: 'read' }, 1);
  }
}

async function measure(name: string, seeded: Seeded): Promise<void> {
  await using service = await start(serviceAt(executable), seeded);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const send = async (method: string, token: string, body?: string): Promise<number> => {
    const startedMs = performance.now();
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const target = body === undefined ? `/plants?limit=${limit}` : '/plants';
    const sent = request(service.address + target, { agent, method, headers }).end(body);
    const [response] = await once(sent, 'response');
    await text(response);
    if (response.statusCode >= 300) throw new Error(`status ${response.statusCode}`);
    return performance.now() - startedMs;
  };
  const other = seeded.tokens.at(-1) ?? '';
  const times = owners.map(() => ({ stale: [] as number[], cached: [] as number[] }));
  for (let round = 0; round < rounds; round++) {
    for (const [at, { stale, cached }] of times.entries()) {
      const token = seeded.tokens[at] ?? '';
      await send('POST', other, '{"name":"Fern"}');
      stale.push(await send('GET', token));
      cached.push(await send('GET', token));
    }
  }
  agent.destroy();
  const [one] = times;
  const rows = times.map(({ stale, cached }, at) => [
    formatNumber(owners[at] ?? 0),
    formatNumber(1_000 * median(stale)),
    formatRatio(median(stale) / median(one?.stale ?? [])),
    formatNumber(1_000 * median(cached)),
  ]);
  console.log(`${name}, a page of ${limit} of ${formatNumber(population.plants)} plants\n`);
  console.log(table(['Owners', 'µs', 'Ratio', 'µs if cached'], rows));
}
