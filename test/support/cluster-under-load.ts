/**
 * Two replicas on a Citus cluster of this computer, started as users start them, with clients of stores on every
 * worker.
 */
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { addToken, call } from './app.ts';
import { isCitus, machineOfStore, onWorkers, peers } from './citus.ts';
import { serve, type Service } from './command.ts';
import { machineOf, type Machine } from './machine.ts';
import { PacedLoad, quantile, type LoadedStore, type Sample } from './paced-load.ts';
import { query } from './postgres.ts';
import { postgresUrl } from './postgres-for-all.ts';
import { testDatabase } from './storages.ts';
import { until } from './until.ts';

/** The first milliseconds of the load do not count, in which code is compiled and connections are opened. */
const warmUpMs = 4_000;
/** Nor do the first milliseconds of a fault. */
const noticeMs = 3_000;
/** After this time, the stores of the failed machine get their 503 at once. */
const firstTimeoutsMs = 6_000;
/** Less than any timeout. */
const atOnceMs = 1_000;
const readinessEachMs = 500;
const slowestCount = 5;
const storesPerWorker = 2;
const usersPerStore = 3;

/** How requests of one kind to the stores on other machines were served. */
interface Served {
  count: number;
  /** The part that got no correct response during the fault. */
  bad: number;
  quietP99Ms: number;
  p99Ms: number;
}

export interface Report {
  /** Responses that are wrong by themselves, and inconsistencies between responses. */
  falseAnswers: unknown[];
  faults: string[];
  /** The number of responses of /readyz by status, from all replicas. */
  readiness: Record<string, number>;
  others: Record<Sample['kind'], Served>;
  /** Stores of the failed machine during the fault. `late` is the part that came late after the first timeouts. */
  failed: { count: number; late: number; slowestMs: number };
  /** All failures by their reason. */
  failures: Record<string, number>;
  /** The slowest requests to other stores, with the time since the fault. */
  slowest: (Sample & { sinceFaultMs: number })[];
}

/** The reason why the machines of the cluster cannot be stopped, or false. */
export async function notLocal(): Promise<string | false> {
  if (!isCitus) return 'there is no Citus cluster';
  if (process.getuid?.() !== 0) return 'only root can stop the machines of the cluster';
  try {
    const url = await postgresUrl();
    await Promise.all([url, ...onWorkers(url)].map(machineOf));
    return false;
  } catch (error) {
    return `the machines of the cluster are not on this computer: ${String(error)}`;
  }
}

export class ClusterUnderLoad implements AsyncDisposable {
  readonly coordinator: Machine;
  readonly workers: readonly Machine[];
  readonly storage: PostgresStorage;
  /** The environment of a command that uses the cluster. */
  readonly env: { PLANT_STORE_DATABASE: string };
  /** The replicas. */
  readonly addresses: string[] = [];
  readonly #t: TestContext;
  readonly #replicas: Service[] = [];
  readonly #readiness: Record<string, number> = {};
  #stores: readonly LoadedStore[] = [];
  #load: PacedLoad | undefined;
  #watch = Promise.resolve();
  #isRunning = true;

  private constructor(t: TestContext, machines: readonly Machine[], database: string) {
    const [coordinator, ...workers] = machines;
    if (coordinator === undefined) throw new Error('there are no machines');
    this.#t = t;
    this.coordinator = coordinator;
    this.workers = workers;
    this.storage = new PostgresStorage(database, { create: true });
    this.env = { PLANT_STORE_DATABASE: database };
  }

  /** Resolves when there is load on all workers. */
  static async start(t: TestContext): Promise<ClusterUnderLoad> {
    const { url } = await testDatabase(t, 'PostgreSQL');
    const urls = [url, ...onWorkers(url)];
    const machines = await Promise.all(urls.map(machineOf));
    const cluster = new ClusterUnderLoad(t, machines, peers(url));
    await cluster.storage.open();
    await Promise.all([cluster.addReplica(), cluster.addReplica()]);
    cluster.#stores = await cluster.#makeStores();
    const random = (bound: number) => Math.floor(Math.random() * bound);
    cluster.#load = new PacedLoad([...cluster.addresses], cluster.#stores, random);
    cluster.#watch = cluster.#watchReadiness([...cluster.addresses]);
    return cluster;
  }

  storesOn(machine: Machine): LoadedStore[] {
    return this.#stores.filter((store) => store.machine === machine.host);
  }

  /** Starts another replica, which gets no load. Returns the milliseconds until it is ready; Infinity if it is not. */
  async addReplica(timeoutMs = 10_000): Promise<number> {
    const startedMs = performance.now();
    const replica = await serve(this.#t, [], { env: this.env });
    this.#replicas.push(replica);
    const { address } = replica;
    this.addresses.push(address);
    const isReady = async () => (await statusOf(`${address}/readyz`)) === 200;
    return until('a replica is ready', isReady, timeoutMs).then(
      () => performance.now() - startedMs,
      () => Infinity,
    );
  }

  /**
   * The milliseconds until every store on the machine can be listed and changed through every replica; Infinity if
   * that takes longer than the timeout.
   */
  async recovery(machine: Machine, timeoutMs: number): Promise<number> {
    const startedMs = performance.now();
    const serves = (address: string, token: string) =>
      until(
        `${address} serves the store`,
        async () =>
          (await statusOf(`${address}/plants?limit=1`, token)) === 200 &&
          (await statusOf(`${address}/plants/${2 ** 52}`, token, 'DELETE')) === 404,
        timeoutMs,
      );
    const tokens = this.storesOn(machine).map(({ users: [first] }) => first?.token ?? '');
    return Promise.all(
      this.addresses.flatMap((address) => tokens.map((token) => serves(address, token))),
    ).then(
      () => performance.now() - startedMs,
      () => Infinity,
    );
  }

  /** Ends the load, and describes what happened between these times. The coordinator has no stores. */
  async report(faultAtMs: number, endMs: number, failed: Machine): Promise<Report> {
    await this.#stop();
    const { samples = [], falseAnswers = [] } = this.#load ?? {};
    const warmMs = (samples[0]?.dueMs ?? 0) + warmUpMs;
    const during = samples.filter(({ dueMs }) => dueMs > faultAtMs && dueMs < endMs);
    const counted = during.filter(({ dueMs }) => dueMs > faultAtMs + noticeMs);
    const isOther = ({ machine }: Sample) => machine !== failed.host;
    const served = (kind: Sample['kind']): Served => {
      const select = (all: Sample[]) => all.filter((each) => isOther(each) && each.kind === kind);
      const quiet = select(samples.filter(({ dueMs }) => dueMs > warmMs && dueMs < faultAtMs));
      const noisy = select(counted);
      const latencies = (all: Sample[]) => all.map(({ latencyMs }) => latencyMs);
      const p99 = (all: Sample[]) => quantile(latencies(all), 0.99);
      const bad = noisy.filter(({ failure }) => failure !== '').length / noisy.length;
      return { count: noisy.length, bad, quietP99Ms: p99(quiet), p99Ms: p99(noisy) };
    };
    const ofFailed = during.filter((each) => !isOther(each) && each.failure !== 'not sent');
    const afterTimeouts = ofFailed.filter(({ dueMs }) => dueMs > faultAtMs + firstTimeoutsMs);
    const late = afterTimeouts.filter(({ latencyMs }) => latencyMs > atOnceMs);
    const failures: Record<string, number> = {};
    for (const each of during.filter(({ failure }) => failure !== '')) {
      const key = `${isOther(each) ? 'other' : 'failed'}: ${each.kind}: ${each.failure}`;
      failures[key] = (failures[key] ?? 0) + 1;
    }
    return {
      falseAnswers,
      faults: (await this.#load?.faults()) ?? [],
      readiness: this.#readiness,
      others: { read: served('read'), write: served('write') },
      failed: {
        count: afterTimeouts.length,
        late: late.length / afterTimeouts.length,
        slowestMs: Math.max(0, ...ofFailed.map(({ latencyMs }) => latencyMs)),
      },
      failures,
      slowest: during
        .filter(isOther)
        .toSorted((a, b) => b.latencyMs - a.latencyMs)
        .slice(0, slowestCount)
        .map((each) => ({ ...each, sinceFaultMs: each.dueMs - faultAtMs })),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const machine of [this.coordinator, ...this.workers]) await machine.restore();
    await this.#stop();
    await this.storage[Symbol.asyncDispose]();
    // They would connect again while the database is dropped.
    await Promise.all(this.#replicas.map((replica) => replica.stop('SIGKILL')));
    // The database cannot be dropped while it has prepared transactions.
    await query(this.coordinator.url, 'SELECT recover_prepared_transactions()');
  }

  async #stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all([this.#load?.stop(), this.#watch]);
  }

  async #makeStores(): Promise<LoadedStore[]> {
    const stores: LoadedStore[] = [];
    const isFull = (machine: string) =>
      stores.filter((store) => store.machine === machine).length === storesPerWorker;
    for (let at = 1; !this.workers.every(({ host }) => isFull(host)); at++) {
      const name = `store ${at}`;
      const make = async (user: string) => {
        const token = await addToken(this.storage, user, { store: name, role: 'manager' });
        return { name: user, token, isManager: true };
      };
      const users = [await make('user 1')];
      const machine = await machineOfStore(this.coordinator.url, name);
      if (isFull(machine)) continue;
      for (let user = 2; user <= usersPerStore; user++) users.push(await make(`user ${user}`));
      stores.push({ name, machine, users });
    }
    return stores;
  }

  async #watchReadiness(addresses: readonly string[]): Promise<void> {
    while (this.#isRunning) {
      const statuses = addresses.map((address) => statusOf(`${address}/readyz`));
      for (const status of await Promise.all(statuses)) {
        this.#readiness[status] = (this.#readiness[status] ?? 0) + 1;
      }
      await pause(readinessEachMs);
    }
  }
}

/** The status of the response; 0 if there is none. */
function statusOf(url: string, token?: string, method = 'GET'): Promise<number> {
  return call(url, method, token === undefined ? {} : { token }).then(
    ({ status }) => status,
    () => 0,
  );
}
