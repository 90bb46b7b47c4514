/**
 * Replays a day of the example in docs/scaling.md with one user for 10,000, and prints what it costs: the figures from
 * which the sums of that page are calculated. The database must be empty, and its servers must be on this computer.
 * If it is a Citus cluster, its machines are measured one by one. Run nothing else on the servers meanwhile.
 *
 *   node_modules/.bin/node bench/day.ts --database postgres://postgres@127.0.0.1/day --minutes 10
 *
 * The day takes as long as `--minutes` says. In less time, more requests follow within the 10 seconds in which the
 * service caches a grant, so the day looks cheaper than it is: with 10 minutes, that is one request of six.
 */
import { parseArgs } from 'node:util';
import { serve } from '../test/support/command.ts';
import { query } from '../test/support/postgres.ts';
import { formatNumber, table } from './figures.ts';
import { fillStores, makeStores, type UserToken } from './many-stores.ts';
import { Meter, type Reading } from './meter.ts';
import { replay, type Outcome, type PlannedRequest } from './replay.ts';

const { values } = parseArgs({
  options: {
    database: { type: 'string' },
    minutes: { type: 'string', default: '10' },
    users: { type: 'string', default: '10000' },
  },
});
const { database } = values;
if (database === undefined) throw new Error('Name an empty database with --database.');
const dayMs = Number(values.minutes) * 60_000;
const users = Number(values.users);

const realUsers = 100_000_000;
const plantsEach = 100;
const listsEach = 10;
const changesEach = 1;
const pagePlants = 20;
/** Half of the users have a store of their own. The others are in stores of this size. */
const sharedStoreUsers = 10;
const hours = 24;
const busiestHour = 19;
/** Requests of the busiest hour relative to the average. */
const busiest = 5;
const otherHours = (hours - busiest) / (hours - 1);
const secondsOfHour = 3_600;
/** Requests of one kind after the day, to tell the costs of a list and of a change apart. */
const aloneRequests = { lists: 10_000, changes: 2_000 };
const warmUpRequests = 1_000;
const alonePerSecond = { lists: 200, changes: 40 };

const cleanups: (() => unknown)[] = [];
const scope = { after: (cleanup: () => unknown) => void cleanups.push(cleanup) };
try {
  await main(database);
} finally {
  for (const cleanup of cleanups.toReversed()) await cleanup();
}

async function main(address: string): Promise<void> {
  const sqlUrl = firstHost(address);
  await refuseUnusable(sqlUrl);
  const people = await makePeople(address);
  console.error('adding plants');
  await fillStores(sqlUrl, people, users * plantsEach);
  const service = await serve(scope, ['--log-level', 'warn', '--database', address]);
  const meter = await Meter.of(sqlUrl, service.child.pid ?? 0);
  scope.after(() => meter.stop());
  const diskBytes = await meter.diskBytes();
  const send = (requests: readonly PlannedRequest[]) =>
    replay(
      service.address,
      people.map(({ token }) => token),
      requests,
    );
  const day = dayOf();
  const hourMs = dayMs / hours;
  const isBusy = ({ atMs }: PlannedRequest) => Math.floor(atMs / hourMs) === busiestHour;
  const [fromMs, toMs] = [busiestHour * hourMs, (busiestHour + 1) * hourMs];
  const phases: Record<string, PlannedRequest[]> = {
    'before the busiest hour': day.filter(({ atMs }) => atMs < fromMs),
    'the busiest hour': day.filter(isBusy),
    'after the busiest hour': day.filter(({ atMs }) => atMs >= toMs),
    'lists alone': alone('lists', list),
    'changes alone': alone('changes', (user, round) => change(user, round + 1)),
  };
  await send(alone('lists', list).slice(0, warmUpRequests)); // the code is compiled, and connections are open
  const rows: Measured[] = [];
  for (const [name, requests] of Object.entries(phases)) {
    console.error(`${name}: ${requests.length} requests`);
    const before = await meter.read();
    const outcome = await send(requests);
    const after = await meter.read();
    rows.push({ name, before, after, outcome });
  }
  const memory = await meter.memory();
  print(rows, meter, diskBytes, memory);
}

/** Before anything is written. */
async function refuseUnusable(url: string): Promise<void> {
  const [row] = await query(
    url,
    `SELECT to_regclass('plant_store.stores') IS NULL AS "isEmpty",
            pg_has_role('pg_read_all_settings', 'MEMBER') AS "canMeasure"`,
  );
  const { isEmpty, canMeasure } = row as Record<'isEmpty' | 'canMeasure', boolean>; // the selected columns
  if (!isEmpty) throw new Error('The database has a Plant Store. Name an empty one.');
  if (!canMeasure)
    throw new Error('Name a user with the role pg_read_all_settings, which finds its servers.');
}

/** Creates stores of one user and of ten, and a token for each user. */
async function makePeople(address: string): Promise<UserToken[]> {
  console.error('creating users');
  const names = (count: number, name: string) =>
    Array.from({ length: count }, (_, at) => `${name} ${at + 1}`);
  const own = names(users / 2, 'own');
  const shared = names(users / 2 / sharedStoreUsers, 'nursery');
  return [
    ...(await makeStores(address, own)),
    ...(await makeStores(address, shared, sharedStoreUsers)),
  ];
}

/** The requests of the day. Each user sends as many as the example says, at random times. */
function dayOf(): PlannedRequest[] {
  const hourMs = dayMs / hours;
  const atMs = () => {
    let left = Math.random() * hours;
    for (let hour = 0; ; hour++) {
      const weight = hour === busiestHour ? busiest : otherHours;
      if (left < weight || hour === hours - 1) return (hour + Math.min(1, left / weight)) * hourMs;
      left -= weight;
    }
  };
  const requests: PlannedRequest[] = [];
  for (let user = 0; user < users; user++) {
    for (let at = 0; at < listsEach; at++) requests.push({ atMs: atMs(), ...list(user) });
    for (let at = 0; at < changesEach; at++) requests.push({ atMs: atMs(), ...change(user, 0) });
  }
  return requests.toSorted((a, b) => a.atMs - b.atMs);
}

/** Requests of one kind at an even rate, of all users in turn. */
function alone(
  kind: keyof typeof aloneRequests,
  make: (user: number, round: number) => Omit<PlannedRequest, 'atMs'>,
): PlannedRequest[] {
  return Array.from({ length: aloneRequests[kind] }, (_, at) => ({
    atMs: (at * 1_000) / alonePerSecond[kind],
    ...make(at % users, Math.floor(at / users)),
  }));
}

/** Any page of the user's plants: the first one alone would be in the cache more often. */
function list(user: number) {
  const page = Math.floor((Math.random() * plantsEach) / pagePlants);
  const after = page * pagePlants * users;
  return { user, method: 'GET' as const, target: `/plants?limit=${pagePlants}&after=${after}` };
}

/** Half of the changes create a plant, and the others delete one, which no other change with the same number does. */
function change(user: number, number: number) {
  if ((user + number) % 2 === 0) return { user, method: 'POST' as const, target: '/plants' };
  const id = user + users * (1 + (number % (plantsEach - 1)));
  return { user, method: 'DELETE' as const, target: `/plants/${id}` };
}

interface Measured {
  name: string;
  before: Reading;
  after: Reading;
  outcome: Outcome;
}

function print(
  rows: readonly Measured[],
  meter: Meter,
  diskBytes: { plants: number; all: number },
  memory: Record<string, number>,
): void {
  const header = [
    'Phase',
    'Requests',
    'Requests/s',
    'Failed',
    'p99 ms',
    ...meter.processes.map((name) => `CPU µs/request: ${name}`),
    'WAL bytes/change',
    'Buffer hits %',
  ];
  const cells = rows.map(({ name, before, after, outcome }) => [
    name,
    formatNumber(outcome.requests),
    formatNumber((outcome.requests * 1_000) / (after.atMs - before.atMs)),
    formatNumber(outcome.failed),
    formatNumber(outcome.p99Ms),
    ...meter.processes.map((each) => formatNumber(cpuUs(before, after, each) / outcome.requests)),
    outcome.changes === 0
      ? '–'
      : formatNumber((after.walBytes - before.walBytes) / outcome.changes),
    formatNumber((100 * (after.hits - before.hits)) / (after.blocks - before.blocks)),
  ]);
  console.log(table(header, cells));

  const plants = users * plantsEach;
  const scale = realUsers / users;
  const busy = rows.find(({ name }) => name === 'the busiest hour');
  const cores = (each: string) =>
    busy === undefined
      ? Number.NaN
      : (cpuUs(busy.before, busy.after, each) / 1e6 / secondsOfHour) * scale;
  const sums: [string, string][] = [
    ['bytes on disk of a plant with its indexes', formatNumber(diskBytes.plants / plants)],
    ['bytes on disk of everything for a plant', formatNumber(diskBytes.all / plants)],
    ...meter.processes.map((each): [string, string] => [
      `memory of ${each}, MiB`,
      formatNumber(memory[each] ?? Number.NaN),
    ]),
    ...[...meter.maxConnections].map(([node, count]): [string, string] => [
      `connections to ${node}, at most`,
      formatNumber(count),
    ]),
    ...meter.processes.map((each): [string, string] => [
      `cores of ${each} in the busiest hour of ${formatNumber(realUsers)} users`,
      formatNumber(cores(each)),
    ]),
  ];
  console.log(table(['What', 'Result'], sums));
}

function cpuUs(before: Reading, after: Reading, name: string): number {
  return (after.cpuUs[name] ?? Number.NaN) - (before.cpuUs[name] ?? Number.NaN);
}

/** The same database without the other hosts. */
function firstHost(address: string): string {
  return address.replace(/^(\w+:\/\/(?:[^@/]*@)?[^,/]*)(?:,[^/]*)?/, '$1');
}
