/**
 * Lookups of tokens that this process does not know. Anybody can make up any number of them, because
 * their checksum is public. So a client has a few lookups at a time, and clients take turns: a flood of
 * one of them delays neither another's new token nor a request whose token is known.
 */
import { Problem } from '../problem.ts';

/** Requests that wait for one. */
export const waitingMax = 2_048;
/** With 4 seconds to identify a caller, 1 to check the schema and 5.5 to write, an answer takes 12 at most. */
const waitMsMax = 1_000;

interface Waiting {
  begin: () => void;
  refuse: () => void;
}

/** A client that has a lookup in progress or waits for one. */
interface Client {
  name: string;
  inProgress: number;
  waiting: Set<Waiting>;
}

export class Lookups {
  readonly #max: number;
  readonly #clients = new Map<string, Client>();
  /** Those of them that wait, in the order of their turns. */
  readonly #queue = new Set<Client>();
  #inProgress = 0;
  #waiting = 0;

  /** `max` lookups are in progress at a time, half of them of one client. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Runs `lookup` for the client at this address. Rejects with `overloaded` if its turn does not come. */
  async run<T>(address: string | undefined, lookup: () => Promise<T>): Promise<T> {
    const name = clientAt(address);
    const client = this.#clients.get(name) ?? { name, inProgress: 0, waiting: new Set() };
    this.#clients.set(name, client);
    if (this.#hasRoomFor(client)) this.#begin(client);
    else await this.#turnOf(client);
    try {
      return await lookup();
    } finally {
      this.#end(client);
    }
  }

  #hasRoomFor(client: Client): boolean {
    return this.#inProgress < this.#max && client.inProgress < this.#max / 2;
  }

  #begin(client: Client): void {
    client.inProgress++;
    this.#inProgress++;
  }

  #end(client: Client): void {
    client.inProgress--;
    this.#inProgress--;
    this.#beginNext();
    this.#removeIdle(client);
  }

  #beginNext(): void {
    for (const client of this.#queue) {
      const [first] = client.waiting;
      if (first === undefined || !this.#hasRoomFor(client)) continue;
      this.#remove(client, first);
      if (this.#queue.delete(client) && client.waiting.size > 0) this.#queue.add(client); // as the last
      this.#begin(client);
      first.begin();
      return;
    }
  }

  async #turnOf(client: Client): Promise<void> {
    if (this.#waiting >= waitingMax) this.#makeRoomFor(client);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = { begin: resolve, refuse: () => reject(tooManyLookups()) };
    client.waiting.add(waiting);
    this.#queue.add(client);
    this.#waiting++;
    const timer = setTimeout(() => this.#refuse(client, waiting), waitMsMax);
    await promise.finally(() => clearTimeout(timer));
  }

  /** The client that waits for most gives one up. */
  #makeRoomFor(newcomer: Client): void {
    let most = newcomer;
    for (const client of this.#queue) if (client.waiting.size > most.waiting.size) most = client;
    const [oldest] = most.waiting;
    if (most === newcomer || oldest === undefined) throw tooManyLookups();
    this.#refuse(most, oldest);
  }

  #refuse(client: Client, waiting: Waiting): void {
    this.#remove(client, waiting);
    if (client.waiting.size === 0) this.#queue.delete(client);
    this.#removeIdle(client);
    waiting.refuse();
  }

  #remove(client: Client, waiting: Waiting): void {
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
 * Whom an address belongs to. Who has one IPv6 address has all those with its first 64 bits. An IPv4
 * address, also as ::ffff:192.0.2.1, is one client.
 */
export function clientAt(address = ''): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [before = [], after = []] = address.split('::').map((part) => part.split(':'));
  const left = 8 - before.length - after.length; // more than none only if there is a `::`
  const zeros = Array.from({ length: Math.max(0, left) }, () => '0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}
