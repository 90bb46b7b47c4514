/**
 * Compares this checkout with another one: `npm run bench:compare -- FOLDER [workload ...]`. Both run side by
 * side, each on its own database, and get load in turn. So the ratio of each round holds even if the speed of
 * the machine changes. FOLDER is a checkout after `npm ci`. With `--storage postgres`, each has a server of its own.
 */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { medianOf, medianRatio, formatNumber, table } from './figures.ts';
import { runRound, workloads, type Round, type Workload } from './load.ts';
import { plantsPerUser } from './plants.ts';
import type * as PostgresBench from './postgres.ts';
import type * as Seed from './seed.ts';
import { serviceAt, start, type Running } from './systems.ts';
import { medianByThread, threadTable } from './threads.ts';
import { assertToolsInstalled, temporaryFolder } from './workspace.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    storage: { type: 'string', default: 'sqlite' },
    plants: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '2' },
  },
});
const [folder = '', ...names] = positionals;
if (folder === '') throw new Error('Missing argument: the folder of the other checkout.');
const chosen = workloads.filter(({ name }) => names.length === 0 || names.includes(name));
const [plants, rounds, seconds] = [values.plants, values.rounds, values.seconds].map(Number) as [
  number,
  number,
  number,
];

await assertToolsInstalled();
const temporary = temporaryFolder();
const population = { plants, users: plants / plantsPerUser };
const executables = [resolve(folder), fileURLToPath(new URL('..', import.meta.url))];
/** Rounds of a workload on the other checkout and on this one. */
type Results = [other: Round[], own: Round[]];
const results = new Map<Workload, Results>(chosen.map((workload) => [workload, [[], []]]));

// The process that starts second can be a few percent slower, so each checkout is second once.
for (const [half, order] of [
  [0, 1],
  [1, 0],
].entries()) {
  await using stack = new AsyncDisposableStack();
  const sides = new Map<number, { system: Running; seeded: Seed.Seeded }>();
  for (const at of order) {
    const root = executables[at] ?? '';
    const seeded = await fill(root, `side-${half}-${at}`, stack);
    const service = serviceAt(join(root, 'bin', 'plant-store.js'));
    sides.set(at, { system: stack.use(await start(service, seeded)), seeded });
  }
  for (const [workload, all] of results) {
    // The first round is a warm-up and does not count.
    for (let round = 0; round <= Math.ceil(rounds / 2); round++) {
      for (const at of round % 2 === 0 ? order : order.toReversed()) {
        const side = sides.get(at);
        if (side === undefined) continue;
        const result = await runRound(side.system, workload, side.seeded, seconds, round);
        if (round > 0) all[at]?.push(result);
      }
    }
  }
}

/** By the checkout's own code, because their schemas can differ. */
async function fill(root: string, name: string, stack: AsyncDisposableStack): Promise<Seed.Seeded> {
  if (values.storage === 'postgres') {
    const { Postgres }: typeof PostgresBench = await import(join(root, 'bench', 'postgres.ts'));
    return stack.use(await Postgres.start()).seed(temporary, name, population);
  }
  const { seed }: typeof Seed = await import(join(root, 'bench', 'seed.ts'));
  return seed(temporary, name, population);
}

const rows = [...results].map(([workload, [other, own]]) => {
  const ratio = (figure: (each: Round) => number) =>
    medianRatio(own.map(figure), other.map(figure)).toFixed(3);
  return [
    workload.name,
    formatNumber(medianOf(other, (each) => each.requestsPerSecond)),
    formatNumber(medianOf(own, (each) => each.requestsPerSecond)),
    ratio((each) => each.requestsPerSecond),
    ratio((each) => each.cpuUsPerRequest),
    ratio((each) => each.p99Ms),
  ];
});
const header = [
  'Workload',
  'Other, requests/s',
  'This',
  'Requests/s, ratio',
  'CPU, ratio',
  'p99, ratio',
];
console.log(table(header, rows));

const threads = [...results].flatMap(([{ name }, [other, own]]) => [
  [[name, 'other'], medianByThread(other)] as const,
  [[name, 'this'], medianByThread(own)] as const,
]);
console.log(threadTable(['CPU µs/request', 'Checkout'], threads));
