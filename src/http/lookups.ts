/**
 * Limits lookups of tokens that are not cached. Clients can invent any number of tokens, because the checksum is
 * public. So each client has a limited number of lookups, and clients are served round-robin. A flood from one
 * client delays neither the new tokens of others nor requests with known tokens.
 */
import { Problem } from '../problem.ts';

/** Maximum number of requests that wait for a lookup. */
export const maxWaitingLookups = 2_048;
/**
 * How long a lookup can wait. On PostgreSQL, a response takes at most 12 s: this, 4 s to identify the caller, 1 s to
 * check the schema, and 5.5 s to write.
 */
const maxLookupWaitMs = 1_000;

interface QueuedLookup {
  start: () => void;
  refuse: () => void;
}

/** A client with lookups in progress or waiting. */
interface Client {
  name: string;
  inProgress: number;
  waiting: Set<QueuedLookup>;
}

export class Lookups {
  readonly #max: number;
  readonly #clients = new Map<string, Client>();
  /** Clients with waiting lookups, in round-robin order. */
  readonly #queue = new Set<Client>();
  #inProgress = 0;
  #waiting = 0;

  /** `max` is the number of concurrent lookups. One client can have half of them. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Runs `lookup` for the client at this address. Rejects with `overloaded` if it cannot start in time. */
  async run<T>(address: string | undefined, lookup: () => Promise<T>): Promise<T> {
    const name = clientAt(address);
    const client = this.#clients.get(name) ?? { name, inProgress: 0, waiting: new Set() };
    this.#clients.set(name, client);
    if (this.#canStart(client)) this.#start(client);
    else await this.#wait(client);
    try {
      return await lookup();
    } finally {
      this.#end(client);
    }
  }

  #canStart(client: Client): boolean {
    return this.#inProgress < this.#max && client.inProgress < this.#max / 2;
  }

  #start(client: Client): void {
    client.inProgress++;
    this.#inProgress++;
  }

  #end(client: Client): void {
    client.inProgress--;
    this.#inProgress--;
    this.#startNext();
    this.#removeIdle(client);
  }

  #startNext(): void {
    for (const client of this.#queue) {
      const [first] = client.waiting;
      if (first === undefined || !this.#canStart(client)) continue;
      this.#remove(client, first);
      if (this.#queue.delete(client) && client.waiting.size > 0) this.#queue.add(client);
      this.#start(client);
      first.start();
      return;
    }
  }

  async #wait(client: Client): Promise<void> {
    if (this.#waiting >= maxWaitingLookups) this.#makeRoomFor(client);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = { start: resolve, refuse: () => reject(tooManyLookups()) };
    client.waiting.add(waiting);
    this.#queue.add(client);
    this.#waiting++;
    const timer = setTimeout(() => this.#refuse(client, waiting), maxLookupWaitMs);
    await promise.finally(() => clearTimeout(timer));
  }

  /** Refuses the oldest waiting lookup of the client that has the most. */
  #makeRoomFor(newcomer: Client): void {
    let busiest = newcomer;
    for (const client of this.#queue)
      if (client.waiting.size > busiest.waiting.size) busiest = client;
    const [oldest] = busiest.waiting;
    if (busiest === newcomer || oldest === undefined) throw tooManyLookups();
    this.#refuse(busiest, oldest);
  }

  #refuse(client: Client, waiting: QueuedLookup): void {
    this.#remove(client, waiting);
    if (client.waiting.size === 0) this.#queue.delete(client);
    this.#removeIdle(client);
    waiting.refuse();
  }

  #remove(client: Client, waiting: QueuedLookup): void {
    client.waiting.delete(waiting);
    this.#waiting--;
  }

  #removeIdle({ name, inProgress, waiting }: Client): void {
    if (inProgress === 0 && waiting.size === 0) this.#clients.delete(name);
  }
}

function tooManyLookups(): Problem {
  return new Problem(
    'overloaded',
    'Too many requests with new tokens are waiting. Try again later.',
  );
}

/**
 * The client of an address. IPv6 addresses with the same first 64 bits are one client, because a host can have a
 * complete /64 network. Each IPv4 address is a client, also as ::ffff:192.0.2.1.
 */
export function clientAt(address = ''): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [before = [], after = []] = address.split('::').map((part) => part.split(':'));
  const left = 8 - before.length - after.length; // above 0 only if there is a `::`
  const zeros = Array.from({ length: Math.max(0, left) }, () => '0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}
