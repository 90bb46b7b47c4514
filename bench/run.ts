/**
 * What is claimed of speed, as one command: `npm run bench`. It compares three systems (systems.ts)
 * side by side on this machine and prints Markdown on standard output, progress on standard error.
 * Quote the ratios: the times are this machine's. An answer that is not good ends the run with 1.
 *
 *   npm run bench -- --plants 100000,1000000 --rounds 5 --seconds 3 --only list-20,start
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { shown } from './figures.ts';
import { growthTable, loadTable, measure, workloads, type Measured, type Pace } from './load.ts';
import { loneCreate } from './lone-create.ts';
import { plantsPerUser } from './plants.ts';
import { readsUnderWrites } from './reads-under-writes.ts';
import { seed, type Seeded } from './seed.ts';
import { starts } from './start.ts';
import { install, withRunning, type Systems } from './systems.ts';
import { wholeList } from './whole-list.ts';
import { workers } from './workers.ts';
import { refuseMissingTools, temporaryFolder } from './workspace.ts';

interface Bench {
  systems: Systems;
  folder: string;
  pace: Pace;
  /** Names of what is measured. */
  only: readonly string[];
}

/** What is more than one load on all systems; each brings a table of its own. */
const studies: Record<string, (bench: Bench, seeded: Seeded) => Promise<string>> = {
  'reads-under-writes': ({ systems, pace }, seeded) => readsUnderWrites(systems, seeded, pace),
  'whole-list': ({ systems, folder }, seeded) => wholeList(systems, folder, seeded),
  workers: ({ systems, pace }, seeded) => workers(systems, seeded, pace),
  start: ({ systems }, seeded) => starts(systems, seeded),
  'lone-create': ({ systems, folder, pace }, seeded) => loneCreate(systems, folder, seeded, pace),
};

const workloadNames = workloads.map(({ name }) => name);
const studyNames = Object.keys(studies);
const names = [...workloadNames, ...studyNames];

const help = `Usage: npm run bench -- [options]

Compares the service with a bare node:http server and with a typical implementation.
Databases go to the temporary folder (TMPDIR), which has to be on a disk.

  --plants N[,N...]   plants in the store, ${plantsPerUser} to each user (default: 100000);
                      of several sizes, each is compared with the first
  --rounds N          rounds of each workload; a figure is their median (default: 5)
  --seconds N         length of a round (default: 3)
  --only NAME[,...]   only these (default: all):
                      ${workloadNames.join(', ')},
                      ${studyNames.join(', ')}
  --help              show this
`;

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});

async function main(): Promise<void> {
  const { sizes, pace, only, isHelpWanted } = options();
  if (isHelpWanted) return void process.stdout.write(help);
  await refuseMissingTools();
  const folder = temporaryFolder();
  progress('installing');
  const bench = { systems: await install(folder), folder, pace, only };
  const { bytes, packages } = bench.systems.footprint;
  print(machine());
  print(`Installed, the service is ${shown(bytes / 1e6)} MB in ${packages} packages.`);

  const results: { plants: number; measured: Measured[] }[] = [];
  for (const plants of sizes) results.push({ plants, measured: await benchOf(plants, bench) });

  const [first, ...larger] = results.filter(({ measured }) => measured.length > 0);
  for (const { plants, measured } of larger) {
    print(`## ${shown(plants)} plants to ${shown(first?.plants ?? 0)}`);
    print(growthTable(first?.measured ?? [], measured));
  }
}

async function benchOf(plants: number, bench: Bench): Promise<Measured[]> {
  const folder = mkdtempSync(join(bench.folder, 'size-'));
  const users = plants / plantsPerUser;
  progress(`filling stores with ${shown(plants)} plants`);
  const seeded = seed(folder, 'plants', { plants, users });
  print(`## ${shown(plants)} plants of ${shown(users)} users`);

  const measured = await loads(bench, seeded);
  if (measured.length > 0) print(loadTable(measured));
  for (const [name, study] of Object.entries(studies)) {
    if (!bench.only.includes(name)) continue;
    progress(name);
    print(await study({ ...bench, folder }, seeded));
  }
  rmSync(folder, { recursive: true });
  return measured;
}

async function loads({ systems, only, pace }: Bench, seeded: Seeded): Promise<Measured[]> {
  const chosen = workloads.filter(({ name }) => only.includes(name));
  if (chosen.length === 0) return [];
  const { service, bare, typical } = systems;
  return withRunning([service, bare, typical], seeded, async (running) => {
    const measured: Measured[] = [];
    for (const workload of chosen) {
      progress(workload.name);
      measured.push(...(await measure(workload, running, seeded, pace)));
    }
    return measured;
  });
}

function options() {
  const { values } = parseArgs({
    options: {
      plants: { type: 'string', default: '100000' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      only: { type: 'string', default: names.join() },
      help: { type: 'boolean', default: false },
    },
  });
  const only = values.only.split(',');
  const unknown = only.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`Nothing is called ${unknown.join(' or ')}. See --help.`);
  return {
    sizes: values.plants.split(',').map((text) => count(text, plantsPerUser)),
    pace: { rounds: count(values.rounds), seconds: count(values.seconds) },
    only,
    isHelpWanted: values.help,
  };
}

function count(text: string, step = 1): number {
  const value = Number(text);
  if (value > 0 && Number.isSafeInteger(value / step)) return value;
  throw new Error(`${text} is not a multiple of ${step} above 0. See --help.`);
}

function machine(): string {
  const [, model = 'unknown processor'] =
    /^model name\s*: (.+)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8')) ?? [];
  const date = new Date().toISOString().slice(0, 10);
  return `${cpus().length} cores (${model}), Node ${process.version}, Linux ${release()}, ${date}`;
}

function print(markdown: string): void {
  console.log(`${markdown.trimEnd()}\n`);
}

function progress(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
}
