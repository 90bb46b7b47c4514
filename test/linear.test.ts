/**
 * Checks the service for linearizability under faults: many clients use it while its processes, its database
 * and its network fail.
 */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { addToken } from './support/app.ts';
import type { Random } from './support/client-under-faults.ts';
import { replicasOnPostgres, workersOnSqlite, type Deployment } from './support/fault-injection.ts';
import {
  faultsOf,
  ofPlants,
  type Content,
  type Effect,
  type OfPlant,
  type Operation,
} from './support/history.ts';
import { without } from './support/programs.ts';
import { seededRandom } from './support/random.ts';
import { record } from './support/recorder.ts';
import { assertReplays } from './support/replay.ts';
import { rounds, sizeOf } from './support/rounds.ts';
import {
  makeShareStore,
  recordShares,
  shareFaultsOf,
  type ShareHistory,
} from './support/share-recorder.ts';
import { untilCount } from './support/until.ts';

const size = { operations: sizeOf({ usual: 1_200, long: 8_000 }) };
const replicas = sizeOf({ usual: 2, long: 3 });

it('SQLite: every plant is linearizable while workers die', { skip: without('ps') }, async (t) => {
  const operationsPerFault = sizeOf({ usual: 450, long: 1_200 });
  const load = { ...(await workersOnSqlite(t, 2)), ...size, operationsPerFault };
  await rounds(t, (inner, seed) => isLinearizable(inner, { ...load, seed }));
});

it('PostgreSQL: every plant is linearizable while replicas, backends and connections die', async (t) => {
  const operationsPerFault = sizeOf({ usual: 270, long: 1_200 });
  const load = { ...(await replicasOnPostgres(t, replicas)), ...size, operationsPerFault };
  await rounds(t, (inner, seed) => isLinearizable(inner, { ...load, seed }));
});

interface Setting extends Deployment {
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
/** Copies of histories with one response changed, in total. */
const minFalsified = 20;

const changeKinds = ['create', 'assign', 'update', 'delete', 'restore'];
const neededKinds = [...changeKinds, 'changed', 'held', 'nothing'];
const otherKinds = ['taken', 'changed', 'held', 'nothing', 'see', 'list'];

async function isLinearizable(t: TestContext, setting: Setting): Promise<void> {
  const { addresses, operations, operationsPerFault, seed } = setting;
  const next = seededRandom(seed);
  const random: Random = (bound) => Math.floor(next() * bound);
  const stores = storesAtOnce * Math.ceil(operations / operationsPerStore / storesAtOnce);
  const { plantStores, shareStores } = await makeStores(setting, stores);
  const counts: Record<string, number> = {};
  const injected: Record<string, number> = {};
  const sum = { operations: 0, contended: 0, changed: 0, caught: 0 };
  const shareSum = { operations: 0, changed: 0, caught: 0 };
  const { signal, abort } = cancellation();
  let known = 0;
  const count = (kind: string) => {
    counts[kind] = (counts[kind] ?? 0) + 1;
    if (changeKinds.includes(kind) || otherKinds.includes(kind)) known++;
  };

  const injectFaults = async () => {
    const faults = Object.entries(setting.faults);
    for (let turn = 0; ; turn++) {
      const due = (turn + 1) * operationsPerFault;
      await untilCount('responses', due, () => (signal.aborted ? Infinity : known));
      if (signal.aborted) return;
      const [name = '', inject] = faults[turn % faults.length] ?? [];
      await inject?.();
      injected[name] = (injected[name] ?? 0) + 1;
    }
  };
  // A fault can need requests to complete. Without one of each kind, the histories would prove nothing.
  const isEnough = () =>
    Object.keys(setting.faults).every((name) => injected[name]) &&
    neededKinds.every((kind) => counts[kind]);
  const work = async () => {
    const network = { addresses, random, count, signal };
    const perStore = Math.ceil(operations / stores);
    for (let first = 0; first < stores; first += storesAtOnce) {
      const shareStore = shareStores[first / storesAtOnce] ?? assert.fail();
      const sharing = recordShares({ ...network, ...shareStore, requests: perStore / 2 });
      const recording = plantStores.slice(first, first + storesAtOnce).map((users, at) => {
        const load = { ...network, ...users, clients: clientsPerStore, operations: perStore };
        return record({ ...load, isEnough, ballast: (first + at) % 10 === 5 ? ballast : 0 });
      });
      const [shares, ...histories] = await Promise.all([sharing, ...recording]);
      if (signal.aborted) return;
      assertFaultless(shareFaultsOf(shares), seed);
      for (const steps of shares.values()) shareSum.operations += steps.length;
      const copies = minFalsified / stores;
      falsify(shareSum, storesAtOnce * copies, () => falseShares(shares, random), shareFaultsOf);
      for (const history of histories) {
        assertFaultless(faultsOf(history), seed);
        sum.operations += history.length;
        sum.contended += contended(history);
        falsify(sum, copies, () => falseHistory(history, random), faultsOf);
      }
    }
  };
  await Promise.all([injectFaults(), work()].map((task) => task.finally(abort)));
  await using storage = await setting.open();
  for (const { store } of plantStores) await assertReplays(storage, store);

  const figures = { seed, ...sum, shares: shareSum, responses: counts, faults: injected };
  t.diagnostic(JSON.stringify(figures));
  // Otherwise the histories would prove nothing.
  const changes = changeKinds.reduce((total, kind) => total + (counts[kind] ?? 0), 0);
  assert.ok(changes > 0.02 * sum.operations, 'many changes succeeded');
  for (const kind of neededKinds) {
    assert.ok((counts[kind] ?? 0) > 0, `some were ${kind}`);
  }
  assert.ok((counts['mirrored'] ?? 0) > 0, 'mirrors were read after receipts');
  assert.ok(sum.contended > 0.02 * sum.operations, 'many overlapped a change of the same plant');
  assert.ok(sum.caught > 0.6 * sum.changed, 'most false responses are detected');
  assert.ok(shareSum.caught > 0.4 * shareSum.changed, 'many about shares are detected');
  for (const name of Object.keys(setting.faults)) assert.ok(injected[name], `${name} happened`);
}

function cancellation() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

/** Creates the users of each store, before the first fault. */
async function makeStores({ open, seed }: Setting, count: number) {
  await using storage = await open();
  const plantStores = Array.from({ length: count }, async (_, at) => {
    const store = `store ${at + 1} of ${seed}`;
    const make = async (name: string, role: 'manager' | 'member') => {
      const token = await addToken(storage, name, { store, role });
      return { name, isManager: role === 'manager', token };
    };
    const maria = await make('maria', 'manager');
    // The manager, who has access to all plants, sends half of the requests.
    const users = [maria, maria, await make('alice', 'member'), await make('bob', 'member')];
    return { store, users };
  });
  const shareStores = Array.from({ length: count / storesAtOnce }, (_, at) =>
    makeShareStore(storage, `shares ${at + 1} of ${seed}`),
  );
  return {
    plantStores: await Promise.all(plantStores),
    shareStores: await Promise.all(shareStores),
  };
}

function assertFaultless(faults: readonly string[], seed: number): void {
  assert.equal(faults.join('\n'), '', `wrong, seed ${seed}`);
}

/** Counts operations that overlap a change of the same plant: only these have several correct responses. */
function contended(history: readonly Operation[]): number {
  const plants = ofPlants(history).filter(({ id }) => id !== undefined);
  let count = 0;
  for (const ofPlant of Map.groupBy(plants, ({ id }) => id).values()) {
    const changes = ofPlant.filter(({ effect }) => changeKinds.includes(effect.kind));
    const overlaps = (one: OfPlant) =>
      changes.some((other) => one !== other && one.call <= other.end && other.call <= one.end);
    count += ofPlant.filter(overlaps).length;
  }
  return count;
}

/** Checks copies of a correct history with one response changed: most of them must be incorrect. */
function falsify<History>(
  sum: { changed: number; caught: number },
  copies: number,
  copy: () => History | undefined,
  faults: (history: History) => string[],
): void {
  for (let made = 0; made < copies;) {
    const changed = copy();
    if (changed === undefined) continue;
    made++;
    sum.changed++;
    if (faults(changed).length > 0) sum.caught++;
  }
}

/** The history with another response about a share. Undefined if the one that was drawn is of a change. */
function falseShares(history: ShareHistory, random: Random): ShareHistory | undefined {
  const [key, steps] = [...history][random(history.size)] ?? assert.fail();
  const at = random(steps.length);
  const step = steps[at];
  if (step?.effect.kind !== 'see') return undefined;
  const { states } = step.effect;
  const others = (['none', 'read', 'write'] as const).filter((state) => !states.includes(state));
  const effect = { kind: 'see' as const, states: others };
  return new Map([[key, steps.with(at, { ...step, effect })]]);
}

/** The history with another response to one request. Undefined if there is none with a known outcome. */
function falseHistory(history: readonly Operation[], random: Random): Operation[] | undefined {
  const at = random(history.length);
  const one = history[at] ?? assert.fail();
  if (one.end === Infinity) return undefined;
  if ('list' in one) {
    const { plants } = one.list;
    const list = { ...one.list, plants: plants.slice(1) };
    return plants.length < 2 ? undefined : history.with(at, { ...one, list });
  }
  const contents = ofPlants(history).flatMap(({ id, effect: other }) =>
    id === one.id && 'content' in other ? (other.content ?? []) : [],
  );
  const effect = falseEffect(one.effect, contents[random(contents.length)]);
  return effect && history.with(at, { ...one, effect });
}

/** `other` is what the plant was at some time. */
function falseEffect(effect: Effect, other: Content | undefined): Effect | undefined {
  switch (effect.kind) {
    case 'create':
      return { kind: 'taken' };
    case 'taken':
      return { kind: 'create', content: { name: 'x', tag: '' } };
    case 'see': {
      if (effect.content !== undefined) return { kind: 'see', content: undefined };
      return other && { kind: 'see', content: other };
    }
    case 'update':
    case 'delete':
      return { kind: 'see', content: undefined };
    case 'changed':
      return { kind: 'delete', condition: effect.condition };
    case 'restore':
    case 'held':
      return { kind: 'nothing' };
    case 'nothing':
      return { kind: 'held' };
    case 'assign':
      return undefined;
  }
}
