/**
 * Checks the claims about lists: `npm run bench:lists [plants]`.
 *
 * - A full list has the same bytes as single reads, and the memory of the server stays constant meanwhile.
 * - A page costs the same at the beginning, in the middle and at the end: for a manager, for a member whose
 *   plants are spread over the store, and with a tag. Quote the ratios: the times depend on the machine.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { median } from './figures.ts';
import { plantsPerUser } from './plants.ts';
import { residentMiB } from './proc.ts';
import { seed } from './seed.ts';
import { serviceAt, start, type Running } from './systems.ts';
import { run, temporaryFolder } from './workspace.ts';

const executable = fileURLToPath(new URL('../bin/plant-store.js', import.meta.url));
const agent = new Agent({ keepAlive: true });
const plants = Number(process.argv[2] ?? 100_000);
const members = plants / plantsPerUser;
const fullLists = 5;
const rounds = 300;

const seeded = seed(temporaryFolder(), 'plants', { plants, users: members });
const [member = ''] = seeded.tokens;
const manager = await managerToken();
{
  await using service = await start(serviceAt(executable), seeded);
  console.log(`${plants} plants, ${members} members, Node ${process.version}\n`);
  await fullList(service);
  await pages(service);
  agent.destroy();
}

async function fullList({ address, pid }: Running): Promise<void> {
  await digestOf(`${address}/plants?limit=20`, manager);
  const idle = residentMiB(pid);
  const digests: string[] = [];
  let peak = idle;
  for (let at = 0; at < fullLists; at++) {
    digests.push(
      await digestOf(`${address}/plants`, manager, () => (peak = Math.max(peak, residentMiB(pid)))),
    );
  }
  const singles = createHash('sha256').update('[');
  for (let id = 1; id <= plants; id++) {
    if (id > 1) singles.update(',');
    await get(`${address}/plants/${id}`, manager, (chunk) => singles.update(chunk));
  }
  const same = digests.every((digest) => digest === digests[0]);
  const asSingles = singles.update(']').digest('hex') === digests[0];
  console.log('| full list | |\n|---|---:|');
  console.log(`| idle, MiB | ${idle.toFixed(1)} |`);
  console.log(`| peak above idle in ${fullLists} lists, MiB | ${(peak - idle).toFixed(1)} |`);
  console.log(`| every list has the same bytes | ${same ? 'yes' : 'NO'} |`);
  console.log(`| same bytes as ${plants} single reads | ${asSingles ? 'yes' : 'NO'} |\n`);
  if (!same || !asSingles) process.exitCode = 1;
}

async function pages({ address }: Running): Promise<void> {
  const middle = Math.floor(plants / 2);
  const lastOfMember = plants - 20 * members - 1;
  const urls = {
    'manager, first': ['/plants?limit=20', manager],
    'manager, middle': [`/plants?limit=20&after=${middle}`, manager],
    'manager, last': [`/plants?limit=20&after=${plants - 20}`, manager],
    'member, first': ['/plants?limit=20', member],
    'member, middle': [`/plants?limit=20&after=${middle}`, member],
    'member, last': [`/plants?limit=20&after=${lastOfMember}`, member],
    'manager, tag, middle': [`/plants?limit=20&after=${middle}&tag=bed%200`, manager],
    'member, tag, middle': [`/plants?limit=20&after=${middle}&tag=bed%200`, member],
  } as const;
  const times = new Map<string, number[]>(Object.keys(urls).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, [url, token]] of Object.entries(urls)) {
      const startedMs = performance.now();
      await get(address + url, token);
      times.get(name)?.push(performance.now() - startedMs);
    }
  }
  const medians = [...times].map(([name, all]) => [name, median(all)] as const);
  const [, first] = medians[0] ?? ['', Number.NaN];
  console.log(`| page of 20, median of ${rounds} | ms | ratio to the first |\n|---|---:|---:|`);
  for (const [name, ms] of medians) {
    console.log(`| ${name} | ${ms.toFixed(3)} | ${(ms / first).toFixed(2)} |`);
  }
}

async function managerToken(): Promise<string> {
  const { address } = seeded.service;
  const args = ['token', 'create', 'manager', '--role', 'manager', '--database', address];
  return (await run(process.execPath, [executable, ...args])).trim();
}

async function digestOf(url: string, token: string, onChunk = () => {}): Promise<string> {
  const digest = createHash('sha256');
  await get(url, token, (chunk) => {
    digest.update(chunk);
    onChunk();
  });
  return digest.digest('hex');
}

async function get(url: string, token: string, onChunk = (_chunk: Buffer) => {}): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const sent = request(url, { agent, headers }).end();
  const [response] = await once(sent, 'response');
  if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode}`);
  for await (const chunk of response) onChunk(chunk);
}
