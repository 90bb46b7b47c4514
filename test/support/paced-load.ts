/**
 * Clients of several stores that send requests at a fixed rate, whatever the response times. Every response is
 * recorded with its times, and checked for linearizability.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Client, type Random, type User } from './client-under-faults.ts';
import { faultsOf, type Operation } from './history.ts';
import { send, wholeList, type Request } from './recorder.ts';

export interface LoadedStore {
  name: string;
  /** The machine that has the store. */
  machine: string;
  /** Nobody else uses the store, which is empty. */
  users: readonly User[];
}

export interface Sample {
  machine: string;
  kind: 'read' | 'write';
  /** When the request should have been sent. */
  dueMs: number;
  /** From then until the response arrived. */
  latencyMs: number;
  /** Why the request failed; empty if it did not. */
  failure: string;
}

/** Of each store. */
const requestEachMs = 100;
/** Of each store. A request that would exceed this is not sent, which counts as a failure. */
const maxInFlight = 16;
/** Longer than the service promises for any response. */
const responseTimeoutMs = 15_000;
/** From this number of plants on, a change deletes one, so that lists stay short. */
const maxPlants = 20;
const pageLimit = 20;

export class PacedLoad {
  readonly samples: Sample[] = [];
  /** Responses that no request of the client allows. */
  readonly falseAnswers: unknown[] = [];
  readonly #addresses: readonly string[];
  readonly #random: Random;
  readonly #histories = new Map<LoadedStore, Operation[]>();
  readonly #running: Promise<void>[] = [];
  readonly #stopping = new AbortController();

  /** Each connection uses a random address. */
  constructor(addresses: readonly string[], stores: readonly LoadedStore[], random: Random) {
    this.#addresses = addresses;
    this.#random = random;
    for (const store of stores) {
      this.#histories.set(store, []);
      this.#running.push(this.#run(store));
    }
  }

  /** Resolves when every request has its response. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }

  /** Reads all plants as each user. Returns a description of each inconsistency since the start. */
  async faults(): Promise<string[]> {
    const faults: string[] = [];
    for (const [{ name, users }, history] of this.#histories) {
      for (const user of users) {
        using client = this.#connect();
        const operation = (await send(client, this.#network(), user, wholeList))?.operation;
        if (operation === undefined) faults.push(`${name} cannot be listed`);
        else history.push(operation);
      }
      faults.push(...faultsOf(history).map((fault) => `${name}: ${fault}`));
    }
    return faults;
  }

  async #run(store: LoadedStore): Promise<void> {
    using clients = new DisposableStack();
    const idle: Client[] = [];
    const inFlight = new Set<Promise<unknown>>();
    const plants: number[] = [];
    let creates = 0;
    const anyChange = (): Request => {
      const id = plants.length < maxPlants ? undefined : plants.shift();
      if (id !== undefined) return { kind: 'delete', id, condition: undefined };
      const content = { name: `${store.name} ${++creates}`, tag: '' };
      return { kind: 'create', wanted: undefined, content };
    };
    const anyRequest = (): Request => {
      const kind = this.#random(10);
      if (kind < 4) return anyChange();
      const id = plants.at(-1);
      if (kind < 5 && id !== undefined) return { kind: 'get', id };
      return { kind: 'list', after: 0, limit: pageLimit, tag: undefined };
    };

    const firstMs = performance.now() + this.#random(requestEachMs);
    for (let dueMs = firstMs; !this.#stopping.signal.aborted; dueMs += requestEachMs) {
      await pause(Math.max(0, dueMs - performance.now()));
      const request = anyRequest();
      if (inFlight.size === maxInFlight) {
        this.#addSample(store, request, dueMs, 'not sent');
        continue;
      }
      const client = idle.pop() ?? clients.use(this.#connect());
      const sending = this.#send(client, store, request, dueMs)
        .then((operation) => {
          if (operation !== undefined && 'id' in operation && operation.id !== undefined) {
            if (operation.effect.kind === 'assign') plants.push(operation.id);
          }
          return idle.push(client);
        })
        .finally(() => inFlight.delete(sending));
      inFlight.add(sending);
    }
    await Promise.all(inFlight);
  }

  async #send(
    client: Client,
    store: LoadedStore,
    request: Request,
    dueMs: number,
  ): Promise<Operation | undefined> {
    const user = store.users[this.#random(store.users.length)] as User; // the index is in range
    let failure = 'no connection';
    let endMs: number | undefined;
    try {
      const sent = await send(client, this.#network(), user, request);
      failure = sent?.failure ?? failure;
      endMs = sent?.end; // a client pauses after a failure
      const { operation } = sent ?? {};
      if (operation !== undefined) this.#histories.get(store)?.push(operation);
      return operation;
    } catch (error) {
      failure = 'false answer';
      this.falseAnswers.push(error);
      return undefined;
    } finally {
      this.#addSample(store, request, dueMs, failure, endMs);
    }
  }

  #addSample(
    { machine }: LoadedStore,
    { kind }: Request,
    dueMs: number,
    failure: string,
    endMs = performance.now(),
  ): void {
    this.samples.push({
      machine,
      kind: kind === 'list' || kind === 'get' ? 'read' : 'write',
      dueMs,
      latencyMs: endMs - dueMs,
      failure,
    });
  }

  #connect(): Client {
    return new Client(this.#network());
  }

  #network() {
    return {
      addresses: this.#addresses,
      random: this.#random,
      count: () => {},
      responseTimeoutMs,
    };
  }
}

/** The value below which this part of the values is; NaN if there are none. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
