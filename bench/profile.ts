/**
 * Shows the CPU time of the service under load by function: `npm run bench:profile -- [workload] [--svg FILE]`. The
 * sources of the checkout run under V8's sampling profiler. Each thread gets a table of the functions with the most
 * self time. `--svg` draws the flame graph of the main thread. The profile includes the startup of the service, a few
 * hundred milliseconds.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { flameGraph, idleName, type CallFrame, type Profile } from './flame-graph.ts';
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
/** With an empty location. */
const idle = `${idleName}\t`;

const executable = fileURLToPath(new URL('../bin/plant-store.js', import.meta.url));
const packageUrl = new URL('..', import.meta.url).href;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { svg: { type: 'string' } },
});
const [name = 'list-20'] = positionals;
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
  if (thread === '0' && values.svg !== undefined) {
    const title = `Event loop during ${name}: busy time by call stack`;
    const named = (frame: CallFrame) => nameOf(frame).replace('\t', ' ').trim();
    writeFileSync(values.svg, flameGraph(title, profile, named));
  }
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
