/**
 * Measures the claims about speed: `npm run bench`. It compares several systems (systems.ts) side by side on this
 * machine. It prints Markdown on standard output and progress on standard error. Quote the ratios: the times
 * depend on the machine. A failed request ends the run with status 1. `--write` also writes the figures to docs/
 * and bench/results/ (pages.ts).
 *
 *   npm run bench -- --plants 100000,1000000 --rounds 5 --seconds 3 --only list-20,start
 *   npm run bench -- --storage postgres
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { formatNumber } from './figures.ts';
import {
  growthTable,
  loadTable,
  measure,
  loadThreadTable,
  workloads,
  type Measured,
  type Pace,
} from './load.ts';
import { writePages } from './pages.ts';
import { plantsPerUser } from './plants.ts';
import { Postgres } from './postgres.ts';
import { readsUnderWrites } from './reads-under-writes.ts';
import { seed, type Seeded } from './seed.ts';
import { starts } from './start.ts';
import type { Sized } from './summary.ts';
import { install, withRunning, type StorageName, type Systems } from './systems.ts';
import { fullList } from './full-list.ts';
import { workers } from './workers.ts';
import { assertToolsInstalled, temporaryFolder } from './workspace.ts';

interface Bench {
  systems: Systems;
  folder: string;
  pace: Pace;
  /** The names of the workloads and studies to run. */
  only: readonly string[];
  /** The server with the plants; undefined for SQLite. */
  postgres: Postgres | undefined;
}

/** Measurements that are more than one load on all systems. Each has its own table. */
const studies: Record<string, (bench: Bench, seeded: Seeded) => Promise<string>> = {
  'reads-under-writes': ({ systems, pace }, seeded) => readsUnderWrites(systems, seeded, pace),
  'full-list': ({ systems, folder }, seeded) => fullList(systems, folder, seeded),
  workers: ({ systems, pace }, seeded) => workers(systems, seeded, pace),
  start: ({ systems }, seeded) => starts(systems, seeded),
};

const workloadNames = workloads.map(({ name }) => name);
const studyNames = Object.keys(studies);
/** What can be measured on each storage: most studies need SQLite files. */
const names: Record<StorageName, readonly string[]> = {
  sqlite: [...workloadNames, ...studyNames],
  postgres: [...workloadNames, 'reads-under-writes'],
};

/** The Markdown that was printed so far, for writePages(). */
const printed: string[] = [];

/** The minimum for --write: with less, a single pause of the machine can determine a figure. */
const writtenPace: Pace = { rounds: 3, seconds: 10 };

const root = fileURLToPath(new URL('..', import.meta.url));

const help = `Usage: npm run bench -- [options]

Compares the service with a bare node:http server, with one that also syncs a log, and with a
typical implementation.
The databases are in the temporary folder (TMPDIR), which must be on a disk.

  --storage NAME      sqlite or postgres (default: sqlite); for postgres, the bench
                      starts a server with its data in the temporary folder
  --plants N[,N...]   plants in the store, ${plantsPerUser} for each user (default: 100000);
                      with several sizes, each is compared with the first
  --rounds N          rounds of each workload; figures are medians (default: 5)
  --seconds N         length of a round (default: 3)
  --only NAME[,...]   run only these (default: all):
                      ${workloadNames.join(', ')},
                      ${studyNames.join(', ')};
                      the last three need sqlite
  --write             also write the figures to docs/ and bench/results/; needs all figures,
                      and at least ${writtenPace.rounds} rounds of ${writtenPace.seconds} seconds
  --help              show this
`;

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});

async function main(): Promise<void> {
  const { storage, sizes, pace, only, isWritten, isHelpRequested } = options();
  if (isHelpRequested) return void process.stdout.write(help);
  await assertToolsInstalled();
  const folder = temporaryFolder();
  progress('installing');
  const systems = await install(folder, storage);
  await using postgres = storage === 'postgres' ? await Postgres.start() : undefined;
  const bench = { systems, folder, pace, only, postgres };
  const where = [machine(), await postgres?.version()].filter(Boolean).join(', ');
  const setting = `${command()} on ${where}`;
  console.log(`${setting}\n`);

  const results: Sized[] = [];
  for (const plants of sizes) results.push({ plants, measured: await benchOf(plants, bench) });

  const [first, ...larger] = results.filter(({ measured }) => measured.length > 0);
  for (const { plants, measured } of larger) {
    print(`### ${formatNumber(plants)} plants to ${formatNumber(first?.plants ?? 0)}`);
    print(growthTable(first?.measured ?? [], measured));
  }
  if (isWritten) {
    await writePages(root, { storage, setting, tables: printed.join('\n\n'), sizes: results });
  }
}

async function benchOf(plants: number, bench: Bench): Promise<Measured[]> {
  const folder = mkdtempSync(join(bench.folder, 'size-'));
  const users = plants / plantsPerUser;
  progress(`filling stores with ${formatNumber(plants)} plants`);
  const population = { plants, users };
  const seeded = await (bench.postgres ?? { seed }).seed(folder, 'plants', population);
  print(`### ${formatNumber(plants)} plants of ${formatNumber(users)} users`);

  const measured = await loads(bench, seeded);
  if (measured.length > 0) {
    print(loadTable(measured));
    print(loadThreadTable(measured));
  }
  for (const [name, study] of Object.entries(studies)) {
    if (!bench.only.includes(name)) continue;
    progress(name);
    print(await study({ ...bench, folder }, seeded));
  }
  if (bench.postgres !== undefined) print(bench.postgres.table());
  rmSync(folder, { recursive: true });
  return measured;
}

async function loads(
  { systems, only, pace, postgres }: Bench,
  seeded: Seeded,
): Promise<Measured[]> {
  const chosen = workloads.filter(({ name }) => only.includes(name));
  if (chosen.length === 0) return [];
  return withRunning(Object.values(systems), seeded, async (running) => {
    const measured: Measured[] = [];
    for (const workload of chosen) {
      progress(workload.name);
      measured.push(...(await measure(workload, running, seeded, pace)));
      await postgres?.sampleConnections(); // idle connections stay open for a while
    }
    return measured;
  });
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
  const only = values.only?.split(',') ?? names[storage];
  const unknown = only.filter((name) => !names[storage].includes(name));
  if (unknown.length > 0) {
    throw new Error(`${storage} has no workload or study ${unknown.join(' or ')}. See --help.`);
  }
  if (values.write && values.only !== undefined) {
    throw new Error('--write needs all figures. Omit --only.');
  }
  const pace = { rounds: count(values.rounds), seconds: count(values.seconds) };
  if (values.write && (pace.rounds < writtenPace.rounds || pace.seconds < writtenPace.seconds)) {
    throw new Error(
      `--write needs --rounds ${writtenPace.rounds} and --seconds ${writtenPace.seconds} or more. Raise or omit them.`,
    );
  }
  return {
    storage,
    sizes: values.plants.split(',').map((text) => count(text, plantsPerUser)),
    pace,
    only,
    isWritten: values.write,
    isHelpRequested: values.help,
  };
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

function print(markdown: string): void {
  printed.push(markdown.trimEnd());
  console.log(`${markdown.trimEnd()}\n`);
}

function progress(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
}
