/**
 * Measures the claims about speed: `npm run bench`. It compares several systems (systems.ts) side by side on this
 * machine. It prints Markdown on standard output and progress on standard error. Quote the ratios: the times
 * depend on the machine. A failed request ends the run with status 1.
 */
import { readFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { loadTable, measure, workloads, type Measured, type Pace } from './load.ts';
import { writePages } from './pages.ts';
import { plantsPerUser } from './plants.ts';
import { Postgres } from './postgres.ts';
import { readsUnderWrites } from './reads-under-writes.ts';
import { seed } from './seed.ts';
import { install, start, type Running, type StorageName } from './systems.ts';
import { assertToolsInstalled, temporaryFolder } from './workspace.ts';

const underWrites = 'reads-under-writes';
const workloadNames = workloads.map(({ name }) => name);
const names = [...workloadNames, underWrites];

/** The minimum for --write: with less, a single pause of the machine can determine a figure. */
const writtenPace: Pace = { rounds: 3, seconds: 10 };

const root = fileURLToPath(new URL('..', import.meta.url));

const help = `Usage: npm run bench -- [options]

Compares the service with a bare node:http server, with one that also syncs a log, and with a
typical implementation.
The databases are in the temporary folder (TMPDIR), which must be on a disk.

  --storage NAME      sqlite or postgres (default: sqlite); for postgres, the bench
                      starts a server with its data in the temporary folder
  --plants N          plants in the store, ${plantsPerUser} for each user (default: 100000)
  --rounds N          rounds of each workload; figures are medians (default: 5)
  --seconds N         length of a round (default: 3)
  --only NAME[,...]   run only these (default: all):
                      ${workloadNames.join(', ')},
                      ${underWrites}
  --write             also write the figures to docs/ and bench/results/; needs all figures,
                      and at least ${writtenPace.rounds} rounds of ${writtenPace.seconds} seconds
  --help              show this
`;

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});

async function main(): Promise<void> {
  const { storage, plants, pace, only, isWritten, isHelpRequested } = options();
  if (isHelpRequested) return void process.stdout.write(help);
  await assertToolsInstalled();
  const folder = temporaryFolder();
  progress('installing');
  const systems = await install(folder, storage);
  await using postgres = storage === 'postgres' ? await Postgres.start() : undefined;
  const where = [machine(), await postgres?.version()].filter(Boolean).join(', ');
  const setting = `${command()} on ${where}`;

  progress('filling stores');
  const users = plants / plantsPerUser;
  const seeded = await (postgres ?? { seed }).seed(folder, 'plants', { plants, users });
  await using stack = new AsyncDisposableStack();
  const running: Running[] = [];
  for (const system of systems) running.push(stack.use(await start(system, seeded)));

  const measured: Measured[] = [];
  for (const workload of workloads.filter(({ name }) => only.includes(name))) {
    progress(workload.name);
    measured.push(...(await measure(workload, running, seeded, pace)));
  }
  const [plantCount, userCount] = [plants, users].map((each) => each.toLocaleString('en-US'));
  const parts = [`### ${plantCount} plants of ${userCount} users`, loadTable(measured)];
  if (only.includes(underWrites)) {
    progress(underWrites);
    parts.push(await readsUnderWrites(running, seeded, pace));
  }
  const tables = parts.join('\n\n');
  console.log(`${setting}\n\n${tables}`);
  if (isWritten) await writePages(root, { storage, setting, tables, plants, measured });
}

function options() {
  const { values } = parseArgs({
    options: {
      storage: { type: 'string', default: 'sqlite' },
      plants: { type: 'string', default: '100000' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      only: { type: 'string' },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const storage = storageOf(values.storage);
  const only = values.only?.split(',') ?? names;
  const unknown = only.filter((name) => !names.includes(name));
  if (unknown.length > 0)
    throw new Error(`There is no workload ${unknown.join(' or ')}. See --help.`);
  if (values.write && values.only !== undefined) {
    throw new Error('--write needs all figures. Omit --only.');
  }
  const pace = { rounds: count(values.rounds), seconds: count(values.seconds) };
  if (values.write && (pace.rounds < writtenPace.rounds || pace.seconds < writtenPace.seconds)) {
    throw new Error(
      `--write needs --rounds ${writtenPace.rounds} and --seconds ${writtenPace.seconds} or more. Raise or omit them.`,
    );
  }
  const plants = count(values.plants, plantsPerUser);
  return { storage, plants, pace, only, isWritten: values.write, isHelpRequested: values.help };
}

function storageOf(text: string): StorageName {
  if (text === 'sqlite' || text === 'postgres') return text;
  throw new Error(`There is no storage ${text}. Use sqlite or postgres.`);
}

function count(text: string, step = 1): number {
  const value = Number(text);
  if (value > 0 && Number.isSafeInteger(value / step)) return value;
  throw new Error(`${text} is not a multiple of ${step} above 0. See --help.`);
}

/** The command line without --write, so that a reader can repeat it. */
function command(): string {
  const args = process.argv.slice(2).filter((arg) => arg !== '--write');
  return ['`npm run bench', ...(args.length > 0 ? ['--', ...args] : [])].join(' ') + '`';
}

function machine(): string {
  const [, model = 'unknown processor'] =
    /^model name\s*: (.+)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8')) ?? [];
  const date = new Date().toISOString().slice(0, 10);
  return `${cpus().length} cores (${model}), Node ${process.version}, Linux ${release()}, ${date}`;
}

function progress(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
}
