/**
 * Many clients of the service while its processes, its database and its network die: what they saw of
 * each plant could have happened one step at a time.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { addToken } from './support/app.ts';
import { faultsOf, type Exchange, type Operation } from './support/history.ts';
import { record, type Random, type User } from './support/recorder.ts';
import type { TestDatabase } from './support/storages.ts';
import { until } from './support/until.ts';

export interface Setting {
  /** Where the plants are. */
  open: TestDatabase['open'];
  addresses: readonly string[];
  /** What is done to the service, in turn. */
  blows: Record<string, () => Promise<void>>;
  /** Answers that are waited for. */
  operations: number;
  /** Answers between two blows. */
  operationsEach: number;
  seed: number;
}

/** Answers from one store: the next ones come from another, so that each check stays small. */
const operationsPerStore = 2_000;
const storesAtOnce = 2;
const clientsEach = 8;
/** The sixth of every ten stores has so many large plants, too many for one batch of a list. */
const ballast = 250;
/** How long the service may take from one blow until it has answered enough for the next. */
const stretchMsMax = 60_000;
/** Copies of histories with one answer changed, in all. */
const falsifiedMin = 40;

export async function isLinearizable(t: TestContext, setting: Setting): Promise<void> {
  const { addresses, operations, operationsEach, seed } = setting;
  const random = randomFrom(seed);
  const stores = storesAtOnce * Math.ceil(operations / operationsPerStore / storesAtOnce);
  const perStore = Math.ceil(operations / stores);
  const all = await makeStores(setting, stores);
  const counts: Record<string, number> = {};
  const struck: Record<string, number> = {};
  const sum = { operations: 0, contended: 0, changed: 0, caught: 0 };
  const abort = new AbortController();
  let known = 0;
  const count = (kind: string) => {
    counts[kind] = (counts[kind] ?? 0) + 1;
    if (isGood(kind)) known++;
  };

  const strike = async () => {
    const blows = Object.entries(setting.blows);
    for (let turn = 0; ; turn++) {
      const next = (turn + 1) * operationsEach;
      const isTime = () => known >= next || abort.signal.aborted;
      await until(`there are ${next} answers`, isTime, stretchMsMax);
      if (abort.signal.aborted) return;
      const [name = '', blow] = blows[turn % blows.length] ?? [];
      await blow?.();
      struck[name] = (struck[name] ?? 0) + 1;
    }
  };
  const work = async () => {
    for (let first = 0; first < stores; first += storesAtOnce) {
      const histories = await Promise.all(
        all.slice(first, first + storesAtOnce).map((one, at) => {
          const has = (first + at) % 10 === 5 ? ballast : 0;
          const load = { addresses, ...one, clients: clientsEach, operations: perStore };
          return record({ ...load, ballast: has, random, count, signal: abort.signal });
        }),
      );
      if (abort.signal.aborted) return;
      for (const history of histories) {
        sum.operations += history.length;
        const faults = faultsOf(history).join('\n');
        const where = `wrong within ${sum.operations} operations, seed ${seed}:`;
        assert.equal(faults, '', `${where}\n${faults}`);
        sum.contended += contended(history);
        falsify(history, falsifiedMin / stores, random, sum);
      }
    }
  };
  await Promise.all([strike(), work()].map((one) => one.finally(() => abort.abort())));

  t.diagnostic(JSON.stringify({ seed, ...sum, answers: counts, blows: struck }));
  // Otherwise the histories would show nothing.
  const changes = (counts['created'] ?? 0) + (counts['deleted'] ?? 0);
  assert.ok(changes > 0.1 * sum.operations, 'many changes succeeded');
  assert.ok(
    sum.contended > 0.05 * sum.operations,
    'many operations met a change of the same plant',
  );
  assert.ok(sum.caught > 0.6 * sum.changed, 'most wrong answers would have been noticed');
  for (const name of Object.keys(setting.blows)) assert.ok(struck[name], `${name} happened`);
}

/** The manager and two members of each store, made before anything is struck. */
async function makeStores(
  { open }: Setting,
  count: number,
): Promise<{ store: string; users: User[] }[]> {
  await using storage = await open();
  return await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const store = `store ${at + 1}`;
      const make = async (name: string, role: 'manager' | 'member') => {
        const token = await addToken(storage, name, { store, role });
        return { name, isManager: role === 'manager', token };
      };
      const maria = await make('maria', 'manager');
      // Half of the requests are the manager's, who meets everybody's plants.
      const users = [maria, maria, await make('alice', 'member'), await make('bob', 'member')];
      return { store, users };
    }),
  );
}

/** Checks copies of a right history with one answer changed, which cannot all be right too. */
function falsify(
  history: readonly Operation[],
  copies: number,
  random: Random,
  sum: { changed: number; caught: number },
): void {
  for (let made = 0; made < copies;) {
    const at = random(history.length);
    const operation = history[at];
    const exchange = operation && falsified(operation.exchange, history);
    if (exchange === undefined) continue;
    made++;
    sum.changed++;
    if (faultsOf(history.with(at, { ...operation, exchange } as Operation)).length > 0)
      sum.caught++;
  }
}

/** How many operations on one plant met a change of it: only those have more than one right answer. */
function contended(history: readonly Operation[]): number {
  const byId = Map.groupBy(history, ({ exchange }) => ('id' in exchange ? exchange.id : undefined));
  byId.delete(undefined);
  const isChange = ({ exchange: { kind } }: Operation) => /^(created|deleted|lost)/.test(kind);
  let met = 0;
  for (const operations of byId.values()) {
    const changes = operations.filter(isChange);
    const meets = (one: Operation) =>
      changes.some((other) => one !== other && one.call <= other.end && other.call <= one.end);
    met += operations.filter(meets).length;
  }
  return met;
}

/** Another answer to the same request; undefined if there is none, or none that says anything. */
function falsified(exchange: Exchange, history: readonly Operation[]): Exchange | undefined {
  switch (exchange.kind) {
    case 'created':
      return exchange.wanted === undefined ? undefined : { kind: 'taken', id: exchange.id };
    case 'taken':
      return { ...exchange, kind: 'created', wanted: exchange.id, content: { name: 'x', tag: '' } };
    case 'found':
    case 'deleted':
      return { kind: 'missing', id: exchange.id };
    case 'missing': {
      const { id } = exchange;
      for (const { exchange: other } of history) {
        if (other.kind === 'created' && other.id === id) return { ...other, kind: 'found' };
      }
      return undefined;
    }
    case 'listed':
      return exchange.plants.length < 2
        ? undefined
        : { ...exchange, plants: exchange.plants.slice(1) };
    case 'lost create':
    case 'lost delete':
      return undefined;
  }
}

function isGood(kind: string): boolean {
  return ['created', 'taken', 'deleted', 'found', 'missing', 'listed'].includes(kind);
}

/** The same numbers for the same seed (mulberry32). */
function randomFrom(seed: number): Random {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}
