/**
 * Compares this checkout with another one: `npm run bench:compare -- FOLDER [workload ...]`. FOLDER is a checkout after
 * `npm ci`. Both run side by side, each on its own database, and get load in turn. So the ratio of each round holds
 * even if the speed of the machine changes. The other checkout also runs a second time: a ratio means something if it
 * is farther from 1 than that of these two (A/A).
 */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { formatMeasured, medianOf, medianRatio, table } from './figures.ts';
import { runRound, workloads, type Round } from './load.ts';
import { plantsPerUser } from './plants.ts';
import type * as PostgresBench from './postgres.ts';
import type * as Seed from './seed.ts';
import { serviceAt, start, type Running } from './systems.ts';
import { assertToolsInstalled, temporaryFolder } from './workspace.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    storage: { type: 'string', default: 'sqlite' },
    plants: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '2' },
    processes: { type: 'string', default: '3' },
  },
});
const [folder = '', ...names] = positionals;
if (folder === '') throw new Error('Missing argument: the folder of the other checkout.');
const [plants, rounds, seconds, processes] = [
  values.plants,
  values.rounds,
  values.seconds,
  values.processes,
].map(Number) as [number, number, number, number];
const roundsOfProcess = Math.ceil(rounds / processes);

await assertToolsInstalled();
const temporary = temporaryFolder();
const other = resolve(folder);
const variants = [other, fileURLToPath(new URL('..', import.meta.url)), other];
/** By workload: the rounds of each variant. */
const results = workloads
  .filter(({ name }) => names.length === 0 || names.includes(name))
  .map((workload) => ({ workload, all: variants.map((): Round[] => []) }));

for (let number = 0; number < processes; number++) {
  // A process that starts later can be a few percent slower, so each variant is first once.
  const order = variants.map((_, at) => (at + number) % variants.length);
  await using stack = new AsyncDisposableStack();
  const sides = new Map<number, { system: Running; seeded: Seed.Seeded }>();
  for (const at of order) sides.set(at, await startSide(at, `side-${number}-${at}`, stack));
  for (const { workload, all } of results) {
    // The first round is a warm-up and does not count.
    for (let round = 0; round <= roundsOfProcess; round++) {
      for (const at of round % 2 === 0 ? order : order.toReversed()) {
        const side = sides.get(at);
        if (side === undefined) continue;
        const result = await runRound(side.system, workload, side.seeded, seconds, round);
        if (round > 0) all[at]?.push(result);
      }
    }
  }
}

async function startSide(at: number, name: string, stack: AsyncDisposableStack) {
  const root = variants[at] ?? '';
  const seeded = await seedBy(root, name, stack);
  const service = serviceAt(join(root, 'bin', 'plant-store.js'));
  return { system: stack.use(await start(service, seeded)), seeded };
}

/** By the checkout's own code, because their schemas can differ. On PostgreSQL, each has a server of its own. */
async function seedBy(root: string, name: string, stack: AsyncDisposableStack) {
  const population = { plants, users: plants / plantsPerUser };
  if (values.storage === 'postgres') {
    const { Postgres }: typeof PostgresBench = await import(join(root, 'bench', 'postgres.ts'));
    return stack.use(await Postgres.start()).seed(temporary, name, population);
  }
  const { seed }: typeof Seed = await import(join(root, 'bench', 'seed.ts'));
  return seed(temporary, name, population);
}

const rows = results.map(({ workload, all: [a = [], own = [], again = []] }) => {
  const ratios = (figure: (each: Round) => number) =>
    [own, again].map((each) => medianRatio(each, a, figure).toFixed(3));
  return [
    workload.name,
    formatMeasured(medianOf(a, (each) => each.requestsPerSecond)),
    formatMeasured(medianOf(own, (each) => each.requestsPerSecond)),
    ...ratios((each) => each.requestsPerSecond),
    ...ratios((each) => each.cpuUsPerRequest),
    ...ratios((each) => each.p99Ms),
  ];
});
const header = ['Workload', 'Other, requests/s', 'This'];
for (const figure of ['Requests/s', 'CPU', 'p99']) header.push(`${figure}, ratio`, 'A/A');
console.log(table(header, rows));
