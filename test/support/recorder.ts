/**
 * Clients that use the same few plants of one store, and record every request, its response, and the times of
 * both.
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

export interface Load extends Network {
  /** Part of every name, so that a plant of another store is detected. */
  store: string;
  /** Users of the store, which must be empty and not in use by others. */
  users: readonly User[];
  clients: number;
  /** Large plants to create first, so that an unlimited list is streamed. */
  ballast: number;
  /** Responses to wait for. */
  operations: number;
  signal: AbortSignal;
}

export interface Network {
  /** Each connection uses a random address. */
  addresses: readonly string[];
  random: Random;
  /** Counts responses by kind. */
  count: (kind: string) => void;
  /** A response that takes longer counts as lost; 2 seconds by default. */
  responseTimeoutMs?: number;
}

/** Returns an integer from 0 to `bound - 1`. */
export type Random = (bound: number) => number;

/** Pause after a failure: a service that is down must not get thousands of requests a second. */
const pauseMs = 20;
const defaultResponseTimeoutMs = 2_000;
/** Length of a phase: phases with many changes alternate with phases with few. */
const phaseOperations = 100;
/** After this many requests, a client reconnects, perhaps to another process. */
const requestsPerConnection = 40;
/** Ids that all clients use, chosen or assigned. */
const sharedIds = 4;
/** So that a condition often holds, and often does not. */
const knownStates = 2;
/** The most recently assigned ids, which all clients use too. */
const recentIds = 4;

export type Request =
  | { kind: 'create'; wanted: number | undefined; content: Content }
  | { kind: 'get'; id: number }
  | { kind: 'update'; id: number; content: Content; condition: Known | undefined }
  | { kind: 'delete'; id: number; condition: Known | undefined }
  | { kind: 'restore'; id: number }
  | { kind: 'list'; after: number; limit: number | undefined; tag: string | undefined };

/** The content of a plant, and its entity tag. */
interface Known {
  content: Content;
  etag: string;
}

export const wholeList: Request = { kind: 'list', after: 0, limit: undefined, tag: undefined };

/** Runs the load, then reads all plants as each user. */
export async function record(load: Load): Promise<Operation[]> {
  const { store, users, operations, random, signal } = load;
  const history: Operation[] = [];
  const recent: number[] = [];
  /** The last states of each plant. */
  const states = new Map<number, Known[]>();
  let contents = 0;

  const anyId = () => {
    const kind = random(10);
    if (kind < 6 || recent.length === 0) return 1 + random(sharedIds);
    if (kind < 9) return recent[random(recent.length)] ?? 1;
    return Math.max(...recent) + random(4); // the store can be about to assign it
  };
  const anyTag = () => (random(2) === 0 ? '' : 'a');
  const anyContent = (): Content => ({ name: `${store} ${++contents}`, tag: anyTag() });
  const anyCondition = (id: number): Known | undefined => {
    const known = states.get(id) ?? [];
    return random(3) === 0 ? undefined : known[random(known.length)];
  };
  const anyChange = (): Request => {
    const kind = random(20);
    const id = anyId();
    if (kind < 6) return { kind: 'delete', id, condition: anyCondition(id) };
    if (kind < 9) return { kind: 'restore', id: 1 + random(sharedIds) };
    if (kind < 14) {
      return { kind: 'update', id, content: anyContent(), condition: anyCondition(id) };
    }
    const wanted = random(3) === 0 ? undefined : id;
    return { kind: 'create', wanted, content: anyContent() };
  };
  const anyList = (): Request => ({
    kind: 'list',
    after: random(2) === 0 ? anyId() : 0,
    limit: [undefined, 2, 5, 100, 150][random(5)],
    tag: random(3) === 0 ? anyTag() : undefined,
  });
  const firstPage: Request = { kind: 'list', after: 0, limit: 100, tag: undefined };
  // Many concurrent changes, in turn with few changes, so that caches have time to fill.
  const isQuiet = () => Math.floor(history.length / phaseOperations) % 2 === 1;
  const anyRequest = (): Request => {
    const [changes, gets, lists] = isQuiet() ? [8, 20, 10] : [55, 25, 15];
    const kind = random(100);
    if (kind < changes) return anyChange();
    if (kind < changes + gets) return { kind: 'get', id: anyId() };
    return kind < changes + gets + lists ? anyList() : firstPage;
  };

  const append = (operation: Operation | undefined, etag?: string) => {
    if (operation === undefined) return;
    history.push(operation);
    const { exchange } = operation;
    if (etag !== undefined && 'id' in exchange && 'content' in exchange) {
      const { id, content } = exchange;
      states.set(id, [...(states.get(id) ?? []), { content, etag }].slice(-knownStates));
    }
    if (exchange.kind !== 'created' || recent.includes(exchange.id)) return;
    recent.push(exchange.id);
    if (recent.length > recentIds) recent.shift();
  };
  {
    using client = new Client(load);
    const [user = assert.fail()] = users;
    for (let at = 1; at <= load.ballast; at++) {
      // Escaping doubles the quotes, so this is about 600 characters of JSON.
      const content = { name: `${store} ballast ${at} ${'"'.repeat(160)}`, tag: '"'.repeat(100) };
      const request: Request = { kind: 'create', wanted: sharedIds + at, content };
      append((await send(client, load, user, request))?.operation);
    }
  }

  const isKnown = ({ exchange }: Operation) => !exchange.kind.startsWith('lost');
  let known = 0;
  const work = async () => {
    using client = new Client(load);
    while (known < operations && !signal.aborted) {
      const user = users[random(users.length)] as User; // the index is in range
      const sent = await send(client, load, user, anyRequest());
      const operation = sent?.operation;
      append(operation, sent?.response?.etag);
      if (operation !== undefined && isKnown(operation)) known++;
    }
  };
  await Promise.all(Array.from({ length: load.clients }, work));

  using client = new Client(load);
  for (const user of users) {
    let list: Operation | undefined;
    while (list === undefined && !signal.aborted) {
      list = (await send(client, load, user, wholeList))?.operation;
    }
    append(list);
  }
  return history;
}

/** Undefined if there is no connection. The operation is undefined if the request failed without an effect. */
export async function send(
  client: Client,
  { count }: Network,
  user: User,
  request: Request,
): Promise<(Sent & { operation: Operation | undefined }) | undefined> {
  const sent = await client.exchange(bytesOf(user.token, request));
  if (sent === undefined) return undefined;
  const { response, failure, call, end } = sent;
  const exchange = exchangeOf(request, response, failure);
  count(exchange === undefined || exchange.kind.startsWith('lost') ? failure : exchange.kind);
  const who = { name: user.name, isManager: user.isManager };
  return { ...sent, operation: exchange && { who, call, end, exchange } };
}

/** A response, and the times of the request and the response. */
export interface Sent {
  /** Undefined if the response or a part of it is lost. */
  response: RawAnswer | undefined;
  /** Why the request failed; empty if it did not. */
  failure: string;
  call: number;
  end: number;
}

/** Sends one request at a time, and reuses its connection if possible. */
export class Client implements Disposable {
  readonly #network: Network;
  #connection: Connection | undefined;
  #requestsLeft = 0;

  constructor(network: Network) {
    this.#network = network;
  }

  /** Undefined if there is no connection. Pauses after a failure. */
  async exchange(bytes: string): Promise<Sent | undefined> {
    const connection = await this.#connect();
    if (connection === undefined) {
      this.#network.count('no connection');
      await pause(pauseMs);
      return undefined;
    }
    const call = performance.now();
    const response = await this.#exchange(connection, bytes);
    const end = performance.now();
    if (response === undefined || response.isLast) this.#drop();
    const failure = failureOf(response);
    if (failure !== '') await pause(pauseMs);
    return { response, failure, call, end };
  }

  [Symbol.dispose](): void {
    this.#drop();
  }

  #drop(): void {
    this.#connection?.socket.destroy();
    this.#connection = undefined;
  }

  async #connect(): Promise<Connection | undefined> {
    if (this.#requestsLeft-- <= 0 || this.#connection?.socket.destroyed === true) this.#drop();
    if (this.#connection !== undefined) return this.#connection;
    const { addresses, random } = this.#network;
    const connection = new Connection(addresses[random(addresses.length)] ?? '');
    try {
      await once(connection.socket, 'connect');
    } catch {
      return undefined;
    }
    this.#requestsLeft = requestsPerConnection;
    this.#connection = connection;
    return connection;
  }

  /** Undefined if the response or a part of it is lost. */
  async #exchange(connection: Connection, bytes: string): Promise<RawAnswer | undefined> {
    const { responseTimeoutMs = defaultResponseTimeoutMs } = this.#network;
    const timeout = setTimeout(() => connection.socket.destroy(), responseTimeoutMs);
    try {
      connection.write(bytes);
      return await connection.answer();
    } catch {
      return undefined;
    } finally {
      clearTimeout(timeout);
    }
  }
}

function bytesOf(token: string, request: Request): string {
  const head = (method: string, target: string) =>
    `${method} ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;
  const withBody = (value: object) => {
    const body = JSON.stringify(value);
    const length = Buffer.byteLength(body);
    return `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`;
  };
  const ifMatch = (condition: Known | undefined) =>
    condition === undefined ? '' : `If-Match: ${condition.etag}\r\n`;
  switch (request.kind) {
    case 'create': {
      const body = withBody({ id: request.wanted, ...request.content });
      return `${head('POST', '/plants?fields=id,name,tag')}${body}`;
    }
    case 'update': {
      const { id, content, condition } = request;
      const patch = head('PATCH', `/plants/${id}?fields=name,tag`);
      return `${patch}${ifMatch(condition)}${withBody(content)}`;
    }
    case 'restore':
      return `${head('POST', `/plants/${request.id}/restore?fields=name,tag`)}\r\n`;
    case 'get':
      return `${head('GET', `/plants/${request.id}?fields=name,tag`)}\r\n`;
    case 'delete':
      return `${head('DELETE', `/plants/${request.id}`)}${ifMatch(request.condition)}\r\n`;
    case 'list': {
      const { after, limit, tag } = request;
      const query = new URLSearchParams({ fields: 'id,name,tag', after: String(after) });
      if (limit !== undefined) query.set('limit', String(limit));
      if (tag !== undefined) query.set('tag', tag);
      return `${head('GET', `/plants?${query.toString()}`)}\r\n`;
    }
  }
}

function failureOf(response: RawAnswer | undefined): string {
  if (response === undefined) return 'no response';
  if (response.status !== 503) return '';
  const { type } = JSON.parse(response.body) as { type: string };
  return type.replace('/problems/', '');
}

/** Throws if the response is not possible for the request. */
function exchangeOf(
  request: Request,
  response: RawAnswer | undefined,
  failure: string,
): Exchange | undefined {
  if (response === undefined || response.status === 503) {
    const isUnknown = failure === 'no response' || failure === 'outcome-unknown';
    return isUnknown ? lostExchangeOf(request) : undefined;
  }
  const { status, headers, body } = response;
  const unexpected = () =>
    new Error(`unexpected response to ${JSON.stringify(request)}: ${status} ${body}`);
  switch (request.kind) {
    case 'create': {
      const { content, wanted } = request;
      if (status === 409 && wanted !== undefined && body.includes('/problems/id-taken')) {
        return { kind: 'taken', id: wanted };
      }
      if (status !== 201) throw unexpected();
      const { id, name, tag } = JSON.parse(body) as Listed;
      const isSame = name === content.name && tag === content.tag && id === (wanted ?? id);
      if (!isSame || !headers.includes(`location: /plants/${id}`)) throw unexpected();
      return { kind: 'created', content, wanted, id };
    }
    case 'get':
    case 'update':
    case 'delete': {
      const { id, kind } = request;
      if (status === 404 && body.includes('/problems/plant-not-found'))
        return { kind: 'missing', id };
      if (status === 200 && kind === 'get') {
        return { kind: 'found', id, content: JSON.parse(body) as Content };
      }
      if (kind === 'get') throw unexpected();
      const condition = request.condition?.content;
      if (status === 412 && condition !== undefined) return { kind: 'changed', id, condition };
      if (status === 204 && kind === 'delete') return { kind: 'deleted', id, condition };
      if (status !== 200 || kind !== 'update') throw unexpected();
      const { content } = request;
      const { name, tag } = JSON.parse(body) as Content;
      if (name !== content.name || tag !== content.tag) throw unexpected();
      return { kind: 'updated', id, content, condition };
    }
    case 'restore': {
      const { id } = request;
      if (status === 404 && body.includes('/problems/plant-not-found'))
        return { kind: 'nothing', id };
      if (status === 409 && body.includes('/problems/id-taken')) return { kind: 'held', id };
      if (status !== 200) throw unexpected();
      return { kind: 'restored', id, content: JSON.parse(body) as Content };
    }
    case 'list': {
      if (status !== 200) throw unexpected();
      const { after, limit = Infinity, tag } = request;
      const plants = JSON.parse(body) as Listed[];
      const [, next] = /^link: .*[?&]after=(\d+)/m.exec(headers.join('\n')) ?? [];
      if (next !== undefined && Number(next) !== plants.at(-1)?.id) throw unexpected();
      const upTo = next === undefined ? Infinity : Number(next);
      return { kind: 'listed', after, limit, upTo, plants, ...(tag !== undefined && { tag }) };
    }
  }
}

/** Undefined for a read. */
function lostExchangeOf(request: Request): Exchange | undefined {
  switch (request.kind) {
    case 'create':
      return { kind: 'lost create', content: request.content, wanted: request.wanted };
    case 'update': {
      const { id, content, condition } = request;
      return { kind: 'lost update', id, content, condition: condition?.content };
    }
    case 'delete':
      return { kind: 'lost delete', id: request.id, condition: request.condition?.content };
    case 'restore':
      return { kind: 'lost restore', id: request.id };
    case 'get':
    case 'list':
      return undefined;
  }
}
