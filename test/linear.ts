/**
 * Checks the service for linearizability under faults: many clients use it while its processes, its database
 * and its network fail.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { addToken } from './support/app.ts';
import { faultsOf, type Exchange, type Operation } from './support/history.ts';
import { seededRandom } from './support/random.ts';
import { record, type Random, type User } from './support/recorder.ts';
import { assertReplays } from './support/replay.ts';
import {
  makeShareStore,
  recordShares,
  shareFaultsOf,
  type ShareHistory,
} from './support/share-recorder.ts';
import type { TestDatabase } from './support/storages.ts';
import { until } from './support/until.ts';

export interface Setting {
  open: TestDatabase['open'];
  addresses: readonly string[];
  /** Faults to inject in turn. */
  faults: Record<string, () => Promise<void>>;
  /** Responses to wait for. */
  operations: number;
  /** Responses between two faults. */
  operationsPerFault: number;
  seed: number;
}

/** Responses of each store: a new store begins a new history, so that each check stays small. */
const operationsPerStore = 2_000;
const storesAtOnce = 2;
const clientsPerStore = 8;
/** The sixth of every ten stores has this many large plants, too many for one batch of a list. */
const ballast = 250;
/** Maximum time from one fault until enough responses for the next. */
const maxFaultIntervalMs = 60_000;
/** Copies of histories with one response changed, in total. */
const minFalsified = 40;

export async function isLinearizable(t: TestContext, setting: Setting): Promise<void> {
  const { addresses, operations, operationsPerFault, seed } = setting;
  const next = seededRandom(seed);
  const random: Random = (bound) => Math.floor(next() * bound);
  const stores = storesAtOnce * Math.ceil(operations / operationsPerStore / storesAtOnce);
  const perStore = Math.ceil(operations / stores);
  const all = await makeStores(setting, stores);
  const shareStores = await makeShareStores(setting, stores / storesAtOnce);
  const counts: Record<string, number> = {};
  const injected: Record<string, number> = {};
  const sum = { operations: 0, contended: 0, changed: 0, caught: 0 };
  const shareSum = { operations: 0, changed: 0, caught: 0 };
  const abort = new AbortController();
  let known = 0;
  const count = (kind: string) => {
    counts[kind] = (counts[kind] ?? 0) + 1;
    if (isKnown(kind)) known++;
  };

  const injectFaults = async () => {
    const faults = Object.entries(setting.faults);
    for (let turn = 0; ; turn++) {
      const due = (turn + 1) * operationsPerFault;
      const isDue = () => known >= due || abort.signal.aborted;
      await until(`there are ${due} responses`, isDue, maxFaultIntervalMs);
      if (abort.signal.aborted) return;
      const [name = '', inject] = faults[turn % faults.length] ?? [];
      await inject?.();
      injected[name] = (injected[name] ?? 0) + 1;
    }
  };
  const work = async () => {
    for (let first = 0; first < stores; first += storesAtOnce) {
      const network = { addresses, random, count, signal: abort.signal };
      const shareStore = shareStores[first / storesAtOnce] ?? assert.fail();
      const sharing = recordShares({ ...network, ...shareStore, requests: perStore / 2 });
      const histories = await Promise.all(
        all.slice(first, first + storesAtOnce).map((users, at) => {
          const load = { ...network, ...users, clients: clientsPerStore, operations: perStore };
          const large = (first + at) % 10 === 5 ? ballast : 0;
          return record({ ...load, ballast: large });
        }),
      );
      const shares = await sharing;
      if (abort.signal.aborted) return;
      const shareFaults = shareFaultsOf(shares).join('\n');
      assert.equal(shareFaults, '', `wrong, seed ${seed}:\n${shareFaults}`);
      falsifyShares(shares, (storesAtOnce * minFalsified) / stores, random, shareSum);
      for (const history of histories) {
        sum.operations += history.length;
        const faults = faultsOf(history).join('\n');
        const where = `wrong within ${sum.operations} operations, seed ${seed}:`;
        assert.equal(faults, '', `${where}\n${faults}`);
        sum.contended += contended(history);
        falsify(history, minFalsified / stores, random, sum);
      }
    }
  };
  await Promise.all([injectFaults(), work()].map((task) => task.finally(() => abort.abort())));
  await using storage = await setting.open();
  for (const { store } of all) await assertReplays(storage, store);

  t.diagnostic(
    JSON.stringify({ seed, ...sum, shares: shareSum, responses: counts, faults: injected }),
  );
  // Otherwise the histories would prove nothing.
  const changes = changeKinds.reduce((total, kind) => total + (counts[kind] ?? 0), 0);
  assert.ok(changes > 0.1 * sum.operations, 'many changes succeeded');
  for (const kind of [...changeKinds, 'changed', 'held', 'nothing']) {
    assert.ok((counts[kind] ?? 0) > 0, `some were ${kind}`);
  }
  assert.ok(
    sum.contended > 0.05 * sum.operations,
    'many operations overlapped a change of the same plant',
  );
  assert.ok(sum.caught > 0.6 * sum.changed, 'most wrong responses would have been detected');
  assert.ok(
    shareSum.caught > 0.4 * shareSum.changed,
    'many wrong responses about shares would have been detected',
  );
  for (const name of Object.keys(setting.faults)) assert.ok(injected[name], `${name} happened`);
}

/** Creates a manager and two members of each store, before the first fault. */
async function makeStores(
  { open, seed }: Setting,
  count: number,
): Promise<{ store: string; users: User[] }[]> {
  await using storage = await open();
  return await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const store = `store ${at + 1} of ${seed}`;
      const make = async (name: string, role: 'manager' | 'member') => {
        const token = await addToken(storage, name, { store, role });
        return { name, isManager: role === 'manager', token };
      };
      const maria = await make('maria', 'manager');
      // The manager, who has access to all plants, sends half of the requests.
      const users = [maria, maria, await make('alice', 'member'), await make('bob', 'member')];
      return { store, users };
    }),
  );
}

async function makeShareStores({ open, seed }: Setting, count: number) {
  await using storage = await open();
  return await Promise.all(
    Array.from({ length: count }, (_, at) =>
      makeShareStore(storage, `shares ${at + 1} of ${seed}`),
    ),
  );
}

/** The same as falsify() for what requests show about shares. */
function falsifyShares(
  history: ShareHistory,
  copies: number,
  random: Random,
  sum: { operations: number; changed: number; caught: number },
): void {
  const all = [...history];
  for (const [, steps] of all) sum.operations += steps.length;
  for (let made = 0; made < copies;) {
    const [key, steps] = all[random(all.length)] ?? assert.fail();
    const at = random(steps.length);
    const step = steps[at];
    if (step?.effect.kind !== 'see') continue;
    made++;
    sum.changed++;
    const { states } = step.effect;
    const others = (['none', 'read', 'write'] as const).filter((state) => !states.includes(state));
    const effect = { kind: 'see' as const, states: others };
    const changed = new Map([[key, steps.with(at, { ...step, effect })]]);
    if (shareFaultsOf(changed).length > 0) sum.caught++;
  }
}

/** Checks copies of a correct history with one response changed: most of them must be incorrect. */
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

/** Counts operations that overlap a change of the same plant: only these have several correct responses. */
function contended(history: readonly Operation[]): number {
  const byId = Map.groupBy(history, ({ exchange }) => ('id' in exchange ? exchange.id : undefined));
  byId.delete(undefined);
  const isChange = ({ exchange: { kind } }: Operation) =>
    changeKinds.includes(kind) || kind.startsWith('lost');
  let count = 0;
  for (const operations of byId.values()) {
    const changes = operations.filter(isChange);
    const overlaps = (one: Operation) =>
      changes.some((other) => one !== other && one.call <= other.end && other.call <= one.end);
    count += operations.filter(overlaps).length;
  }
  return count;
}

/** A different response to the same request. Undefined if there is none with a known outcome. */
function falsified(exchange: Exchange, history: readonly Operation[]): Exchange | undefined {
  switch (exchange.kind) {
    case 'created':
      return exchange.wanted === undefined ? undefined : { kind: 'taken', id: exchange.id };
    case 'taken':
      return { ...exchange, kind: 'created', wanted: exchange.id, content: { name: 'x', tag: '' } };
    case 'found':
    case 'updated':
    case 'deleted':
      return { kind: 'missing', id: exchange.id };
    case 'changed':
      return { ...exchange, kind: 'deleted' };
    case 'restored':
    case 'held':
      return { kind: 'nothing', id: exchange.id };
    case 'nothing':
      return { kind: 'held', id: exchange.id };
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
    case 'lost update':
    case 'lost delete':
    case 'lost restore':
      return undefined;
  }
}

const changeKinds = ['created', 'updated', 'deleted', 'restored'];
const otherKinds = ['taken', 'found', 'missing', 'listed', 'changed', 'held', 'nothing'];

function isKnown(kind: string): boolean {
  return changeKinds.includes(kind) || otherKinds.includes(kind);
}
