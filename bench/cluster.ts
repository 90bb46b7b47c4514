/**
 * The speed of the service on a Citus cluster, relative to the same service on one PostgreSQL server. Both run on this
 * computer, with the same settings and the same plants. The variables are those of test/support/citus.ts. Run nothing
 * else on the cluster meanwhile.
 *
 *   PLANT_STORE_TEST_DATABASE=... PLANT_STORE_TEST_CITUS_WORKERS=... \
 *     node_modules/.bin/node bench/cluster.ts --binaries /usr/lib/postgresql/15/bin --rounds 5 --seconds 4
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isCitus, onWorkers, peers } from '../test/support/citus.ts';
import { serve } from '../test/support/command.ts';
import { PostgresServer, query } from '../test/support/postgres.ts';
import { testDatabase } from '../test/support/storages.ts';
import { formatRatio, medianRatio, table } from './figures.ts';
import { fillStores, makeStores, type UserToken } from './many-stores.ts';
import { temporaryFolder } from './workspace.ts';
import { wrk, type Load, type Requests } from './wrk.ts';

const { values } = parseArgs({
  options: {
    binaries: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    only: { type: 'string', default: '' },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);

/** Each store has one user, who has one token. */
const stores = 1_000;
const plantsPerStore = 100;
/** Of the one store that is large. */
const largePlants = 100_000;
const writtenStores = 50;

/** The settings of the server of comparison that must be those of the coordinator. */
const sharedSettings = ['shared_buffers', 'wal_level', 'fsync', 'synchronous_commit'];

type Population = 'one' | 'many' | 'written';

interface Workload {
  title: string;
  requests: Load['requests'];
  population: Population;
  connections: number;
}

/** Creates come last, so that the other workloads have the same plants in every round. */
const workloads: readonly Workload[] = [
  { title: 'lists of one token', requests: 'list', population: 'one', connections: 32 },
  {
    title: `lists of any of ${stores} tokens`,
    requests: 'list_of_any',
    population: 'many',
    connections: 32,
  },
  { title: 'random pages of one store', requests: 'page', population: 'one', connections: 32 },
  {
    title: `random pages of any of ${stores} stores`,
    requests: 'page',
    population: 'many',
    connections: 32,
  },
  { title: 'creates in one store', requests: 'create', population: 'one', connections: 32 },
  ...[32, 256].map((connections) => ({
    title: `creates in ${writtenStores} stores, ${connections} clients`,
    requests: 'create' as const,
    population: 'written' as const,
    connections,
  })),
];

/** The service on one of the databases. */
interface System {
  name: string;
  address: string;
  populations: Record<Population, Requests>;
}

assert.ok(isCitus, 'PLANT_STORE_TEST_CITUS_WORKERS names no workers');
const folder = temporaryFolder();
const cleanups: (() => unknown)[] = [];
const scope = { after: (cleanup: () => unknown) => void cleanups.push(cleanup) };
try {
  const { url } = await testDatabase(scope, 'PostgreSQL');
  const cluster = await prepare('cluster', peers(url), url);
  const plainUrl = await plainServer(url);
  const plain = await prepare('plain', plainUrl, plainUrl);
  const chosen = workloads.filter(({ title }) => title.includes(values.only));
  const rows = [];
  for (const workload of chosen) {
    console.error(workload.title);
    const measured = await ratios(workload, cluster, plain).catch((error: unknown) => {
      console.error(error); // the other workloads can still be measured
      return ['–', '–', '–'];
    });
    console.error(measured.join(' '));
    rows.push([workload.title, ...measured]);
  }
  console.log(table(['Requests', 'Ratio of the cluster', 'Lowest', 'Highest'], rows));
} finally {
  for (const cleanup of cleanups.toReversed()) await cleanup();
}

/** The median ratio of the rates in each round, the lowest and the highest. */
async function ratios(workload: Workload, cluster: System, plain: System): Promise<string[]> {
  const rates = new Map([cluster, plain].map((system) => [system, [] as number[]]));
  for (let round = 0; round <= rounds; round++) {
    // In turn, because the second of a round can find the computer warmer.
    const order = round % 2 === 0 ? [plain, cluster] : [cluster, plain];
    for (const system of order) {
      const { requests, connections, population } = workload;
      const load = { requests, connections, seconds, seed: round };
      const { requestsPerSecond } = await wrk(system, load, system.populations[population]);
      if (round > 0) rates.get(system)?.push(requestsPerSecond); // the first round warms up
    }
  }
  const [above = [], below = []] = rates.values();
  const each = above.map((rate, round) => rate / (below[round] ?? Number.NaN));
  return [medianRatio(above, below), Math.min(...each), Math.max(...each)].map(formatRatio);
}

/** A PostgreSQL server with the settings of the coordinator. */
async function plainServer(coordinator: string): Promise<string> {
  const server = await PostgresServer.make(values.binaries);
  scope.after(() => server[Symbol.asyncDispose]());
  process.once('exit', () => server.kill());
  const settings: Record<string, string> = {};
  for (const name of sharedSettings) {
    const [row] = await query(coordinator, `SELECT current_setting('${name}') AS value`);
    settings[name] = (row as { value: string }).value; // the selected column
  }
  await server.stop();
  await server.start(settings);
  return server.url();
}

/** Fills a database, and starts the service on it. `sqlUrl` is its address with one host. */
async function prepare(name: string, database: string, sqlUrl: string): Promise<System> {
  console.error(`filling ${name}`);
  const one = await makeStores(database, ['large']);
  const many = await makeStores(
    database,
    Array.from({ length: stores }, (_, at) => `store ${at + 1}`),
  );
  await fillStores(sqlUrl, one, largePlants);
  await fillStores(sqlUrl, many, stores * plantsPerStore);
  for (const node of [sqlUrl, ...(name === 'cluster' ? onWorkers(sqlUrl) : [])]) {
    await query(node, 'CHECKPOINT');
  }
  const env = { PLANT_STORE_DATABASE: database, NODE_ENV: 'production' };
  const { address } = await serve(scope, ['--log-level', 'warn'], { env });
  const requests = (population: Population, users: readonly UserToken[], plants: number) => {
    const tokensFile = join(folder, `${name} ${population}`);
    writeFileSync(tokensFile, users.map(({ token }) => token).join('\n'));
    return { tokensFile, plants };
  };
  return {
    name,
    address,
    populations: {
      one: requests('one', one, largePlants),
      many: requests('many', many, stores * plantsPerStore),
      written: requests('written', many.slice(0, writtenStores), stores * plantsPerStore),
    },
  };
}
