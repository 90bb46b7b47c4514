/**
 * Clients that work on the same few plants of one store, and write down every request with its answer
 * and the times of both.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Connection, type RawAnswer } from './connection.ts';
import type { Exchange, Listed, Operation } from './history.ts';
import type { Content, Person } from './linearizability.ts';

export interface User extends Person {
  token: string;
}

export interface Load {
  /** Each connection goes to a random one. */
  addresses: readonly string[];
  /** Part of every name, so that a plant of another store shows. */
  store: string;
  /** Users of the store, which is empty and which nobody else uses. */
  users: readonly User[];
  clients: number;
  /** Large plants that are in the store before, so that a list of everything is a stream. */
  ballast: number;
  /** How many answers to wait for. */
  operations: number;
  random: Random;
  /** Counts answers by kind. */
  count: (kind: string) => void;
  signal: AbortSignal;
}

/** Returns a whole number from 0, below `bound`. */
export type Random = (bound: number) => number;

/** After a failure, so that a service that is down is not asked thousands of times a second. */
const pauseMs = 20;
/** After this time an answer is given up as lost. */
const patienceMs = 2_000;
/** Operations before a stretch of many changes is followed by one of few, and the other way round. */
const stretch = 100;
/** Requests on one connection: new ones meet other processes. */
const requestsEach = 40;
/** Ids that everybody uses, whether the store assigns them or not. */
const sharedIds = 4;
/** Assigned ids that everybody uses until later ones are assigned. */
const recentIds = 4;

type Request =
  | { kind: 'create'; wanted: number | undefined; content: Content }
  | { kind: 'get'; id: number }
  | { kind: 'delete'; id: number }
  | { kind: 'list'; after: number; limit: number | undefined; tag: string | undefined };

/** Also reads everything at the end, as each user. */
export async function record(load: Load): Promise<Operation[]> {
  const { store, users, operations, random, signal } = load;
  const history: Operation[] = [];
  const recent: number[] = [];
  let creates = 0;

  const anyId = () => {
    const kind = random(10);
    if (kind < 6 || recent.length === 0) return 1 + random(sharedIds);
    if (kind < 9) return recent[random(recent.length)] ?? 1;
    return Math.max(...recent) + random(4); // one that the store may be about to assign
  };
  const anyTag = () => (random(2) === 0 ? '' : 'a');
  const anyChange = (): Request => {
    if (random(2) === 0) return { kind: 'delete', id: anyId() };
    const wanted = random(3) === 0 ? undefined : anyId();
    return { kind: 'create', wanted, content: { name: `${store} ${++creates}`, tag: anyTag() } };
  };
  const anyList = (): Request => ({
    kind: 'list',
    after: random(2) === 0 ? anyId() : 0,
    limit: [undefined, 2, 5, 100, 150][random(5)],
    tag: random(3) === 0 ? anyTag() : undefined,
  });
  const firstPage: Request = { kind: 'list', after: 0, limit: 100, tag: undefined };
  // In turn many changes that meet each other, and few between which caches have time to fill.
  const isQuiet = () => Math.floor(history.length / stretch) % 2 === 1;
  const anyRequest = (): Request => {
    const [changes, gets, lists] = isQuiet() ? [8, 20, 10] : [55, 25, 15];
    const kind = random(100);
    if (kind < changes) return anyChange();
    if (kind < changes + gets) return { kind: 'get', id: anyId() };
    return kind < changes + gets + lists ? anyList() : firstPage;
  };

  const note = (operation: Operation | undefined) => {
    if (operation === undefined) return;
    history.push(operation);
    const { exchange } = operation;
    if (exchange.kind !== 'created' || recent.includes(exchange.id)) return;
    recent.push(exchange.id);
    if (recent.length > recentIds) recent.shift();
  };
  {
    using client = new Client(load);
    const [user = assert.fail()] = users;
    for (let at = 1; at <= load.ballast; at++) {
      // Quotes are escaped, so this is about 600 characters of JSON.
      const content = { name: `${store} ballast ${at} ${'"'.repeat(160)}`, tag: '"'.repeat(100) };
      note(await client.ask(user, { kind: 'create', wanted: sharedIds + at, content }));
    }
  }

  const isKnown = ({ exchange }: Operation) => !exchange.kind.startsWith('lost');
  let known = 0;
  const work = async () => {
    using client = new Client(load);
    while (known < operations && !signal.aborted) {
      const user = users[random(users.length)] as User; // an index of it
      const operation = await client.ask(user, anyRequest());
      note(operation);
      if (operation !== undefined && isKnown(operation)) known++;
    }
  };
  await Promise.all(Array.from({ length: load.clients }, work));

  using client = new Client(load);
  for (const user of users) {
    let list: Operation | undefined;
    while (list === undefined && !signal.aborted) {
      list = await client.ask(user, { kind: 'list', after: 0, limit: undefined, tag: undefined });
    }
    note(list);
  }
  return history;
}

/** Sends a request after another, each on the connection of the last one while that lasts. */
class Client implements Disposable {
  readonly #load: Load;
  #connection: Connection | undefined;
  #requestsLeft = 0;

  constructor(load: Load) {
    this.#load = load;
  }

  /** Undefined if nothing was learned and nothing can have changed. */
  async ask(user: User, request: Request): Promise<Operation | undefined> {
    const { count } = this.#load;
    const connection = await this.#connected();
    if (connection === undefined) {
      count('no connection');
      await pause(pauseMs);
      return undefined;
    }
    const call = performance.now();
    const answer = await this.#send(connection, bytesOf(user.token, request));
    const end = performance.now();
    if (answer === undefined || answer.isLast) this.#drop();
    const kind = kindOf(answer);
    const exchange = exchangeOf(request, answer, kind);
    count(exchange === undefined || exchange.kind.startsWith('lost') ? kind : exchange.kind);
    if (kind !== '') await pause(pauseMs);
    const who = { name: user.name, isManager: user.isManager };
    return exchange && { who, call, end, exchange };
  }

  [Symbol.dispose](): void {
    this.#drop();
  }

  #drop(): void {
    this.#connection?.socket.destroy();
    this.#connection = undefined;
  }

  async #connected(): Promise<Connection | undefined> {
    if (this.#requestsLeft-- <= 0 || this.#connection?.socket.destroyed === true) this.#drop();
    if (this.#connection !== undefined) return this.#connection;
    const { addresses, random } = this.#load;
    const connection = new Connection(addresses[random(addresses.length)] ?? '');
    try {
      await once(connection.socket, 'connect');
    } catch {
      return undefined;
    }
    this.#requestsLeft = requestsEach;
    this.#connection = connection;
    return connection;
  }

  /** Undefined if the answer is lost, or a part of it. */
  async #send(connection: Connection, bytes: string): Promise<RawAnswer | undefined> {
    const patience = setTimeout(() => connection.socket.destroy(), patienceMs);
    try {
      connection.write(bytes);
      return await connection.answer();
    } catch {
      return undefined;
    } finally {
      clearTimeout(patience);
    }
  }
}

function bytesOf(token: string, request: Request): string {
  const head = (method: string, target: string) =>
    `${method} ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;
  switch (request.kind) {
    case 'create': {
      const body = JSON.stringify({ id: request.wanted, ...request.content });
      const length = Buffer.byteLength(body);
      const type = `Content-Type: application/json\r\nContent-Length: ${length}\r\n`;
      return `${head('POST', '/plants?fields=id,name,tag')}${type}\r\n${body}`;
    }
    case 'get':
      return `${head('GET', `/plants/${request.id}?fields=name,tag`)}\r\n`;
    case 'delete':
      return `${head('DELETE', `/plants/${request.id}`)}\r\n`;
    case 'list': {
      const { after, limit, tag } = request;
      const query = new URLSearchParams({ fields: 'id,name,tag', after: String(after) });
      if (limit !== undefined) query.set('limit', String(limit));
      if (tag !== undefined) query.set('tag', tag);
      return `${head('GET', `/plants?${query.toString()}`)}\r\n`;
    }
  }
}

/** Empty for an answer as good as any, otherwise why the request failed. */
function kindOf(answer: RawAnswer | undefined): string {
  if (answer === undefined) return 'no answer';
  if (answer.status !== 503) return '';
  const { type } = JSON.parse(answer.body) as { type: string };
  return type.replace('urn:plant-store:problem:', '');
}

/** Throws if the answer is none that the request can have. */
function exchangeOf(
  request: Request,
  answer: RawAnswer | undefined,
  failure: string,
): Exchange | undefined {
  if (answer === undefined || answer.status === 503) {
    const isUnknown = failure === 'no answer' || failure === 'outcome-unknown';
    if (!isUnknown || request.kind === 'get' || request.kind === 'list') return undefined;
    if (request.kind === 'delete') return { kind: 'lost delete', id: request.id };
    return { kind: 'lost create', content: request.content, wanted: request.wanted };
  }
  const { status, headers, body } = answer;
  const no = () => new Error(`${status} ${body} is no answer to ${JSON.stringify(request)}`);
  switch (request.kind) {
    case 'create': {
      const { content, wanted } = request;
      if (status === 409 && wanted !== undefined && body.includes('problem:id-taken')) {
        return { kind: 'taken', id: wanted };
      }
      if (status !== 201) throw no();
      const { id, name, tag } = JSON.parse(body) as Listed;
      const isSame = name === content.name && tag === content.tag && id === (wanted ?? id);
      if (!isSame || !headers.includes(`location: /plants/${id}`)) throw no();
      return { kind: 'created', content, wanted, id };
    }
    case 'get':
    case 'delete': {
      const { id, kind } = request;
      if (status === 404 && body.includes('problem:plant-not-found'))
        return { kind: 'missing', id };
      if (status === 204 && kind === 'delete') return { kind: 'deleted', id };
      if (status !== 200 || kind !== 'get') throw no();
      return { kind: 'found', id, content: JSON.parse(body) as Content };
    }
    case 'list': {
      if (status !== 200) throw no();
      const { after, limit = Infinity, tag } = request;
      const plants = JSON.parse(body) as Listed[];
      const [, next] = /^link: .*[?&]after=(\d+)/m.exec(headers.join('\n')) ?? [];
      if (next !== undefined && Number(next) !== plants.at(-1)?.id) throw no();
      const upTo = next === undefined ? Infinity : Number(next);
      return { kind: 'listed', after, limit, upTo, plants, ...(tag !== undefined && { tag }) };
    }
  }
}
