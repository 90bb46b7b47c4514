/**
 * Shows the CPU time of the service under load by function: `npm run bench:profile [workload]`. The sources of
 * the checkout run under V8's sampling profiler. Each thread gets a table of the functions with the most self
 * time. The profile includes the startup of the service, a few hundred milliseconds.
 */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { table } from './figures.ts';
import { runRound, workloads } from './load.ts';
import { plantsPerUser } from './plants.ts';
import { seed } from './seed.ts';
import { serviceAt, start } from './systems.ts';
import { threadTable } from './threads.ts';
import { assertToolsInstalled, temporaryFolder } from './workspace.ts';

const plants = 100_000;
const loadSeconds = 5;
const maxEntries = 25;
/** V8's name for the time in which a thread waits, with an empty location. */
const idle = '(idle)\t';

const executable = fileURLToPath(new URL('../bin/plant-store.js', import.meta.url));
const packageUrl = new URL('..', import.meta.url).href;

/** The fields of a .cpuprofile that are read here. Times are in microseconds. */
interface Profile {
  nodes: { id: number; callFrame: CallFrame }[];
  samples: number[];
  timeDeltas: number[];
}

interface CallFrame {
  functionName: string;
  url: string;
  /** Counted from 0. */
  lineNumber: number;
}

const [, , name = 'list-20'] = process.argv;
const workload = workloads.find((each) => each.name === name);
if (workload === undefined) {
  const names = workloads.map((each) => each.name);
  throw new Error(`There is no workload ${name}. Choose one of ${names.join(', ')}.`);
}

await assertToolsInstalled();
const folder = temporaryFolder();
const profiles = join(folder, 'profiles');
mkdirSync(profiles);
const seeded = seed(folder, 'plants', { plants, users: plants / plantsPerUser });
{
  const flags = ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
  await using service = await start(serviceAt(executable), seeded, flags);
  const { requests, cpuUsByThread } = await runRound(service, workload, seeded, loadSeconds, 1);
  console.log(`${name}: ${requests} requests in ${loadSeconds} s\n`);
  console.log(threadTable(['CPU µs/request, including the profiler'], [[[name], cpuUsByThread]]));
}
for (const file of readdirSync(profiles).toSorted()) {
  const [, thread = ''] = /\.(\d+)\.\d+\.cpuprofile$/.exec(file) ?? [];
  const profile: Profile = JSON.parse(readFileSync(join(profiles, file), 'utf8'));
  console.log(tableOf(thread === '0' ? 'Main thread' : `Thread ${thread}`, profile));
}

function tableOf(thread: string, { nodes, samples, timeDeltas }: Profile): string {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const selfUs = new Map<string, number>();
  for (const [at, id] of samples.entries()) {
    const entry = names.get(id) ?? '';
    selfUs.set(entry, (selfUs.get(entry) ?? 0) + (timeDeltas[at + 1] ?? 0));
  }
  const totalUs = selfUs.values().reduce((sum, us) => sum + us, 0);
  const idleUs = selfUs.get(idle) ?? 0;
  selfUs.delete(idle);
  const rows = [...selfUs]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, maxEntries)
    .map(([entry, us]) => [...entry.split('\t'), percent(us, totalUs - idleUs)]);
  const note = `${thread}: idle ${percent(idleUs, totalUs)} % of the time, not included below.`;
  return `${note}\n\n${table(['Function', 'Location', 'Self %'], rows)}`;
}

/** Function and location, separated by a tab. */
function nameOf({ functionName, url, lineNumber }: CallFrame): string {
  const file = url.replace(packageUrl, '').replace('node_modules/', '');
  return `${functionName || '(anonymous)'}\t${url === '' ? '' : `${file}:${lineNumber + 1}`}`;
}

function percent(part: number, whole: number): string {
  return ((100 * part) / whole).toFixed(1);
}
