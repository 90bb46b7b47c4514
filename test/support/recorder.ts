/**
 * Clients that use the same few plants of one store, and record what every response shows.
 */
import {
  Client,
  type Network,
  type RawRequest,
  type Sent,
  type User,
} from './client-under-faults.ts';
import type { RawAnswer } from './connection.ts';
import type { Content, Effect, List, Listed, Operation } from './history.ts';
import { MirrorReader } from './mirror-reader.ts';

export interface Load extends Network {
  /** Part of every name, so that a plant of another store is detected. */
  store: string;
  /** Users of the store, a manager first, which must be empty and not in use by others. */
  users: readonly User[];
  clients: number;
  /** Large plants to create first, so that an unlimited list is streamed. */
  ballast: number;
  /** Responses to wait for, and to continue until `isEnough`. */
  operations: number;
  isEnough: () => boolean;
  signal: AbortSignal;
}

/** Length of a phase: phases with many changes alternate with phases with few. */
const phaseOperations = 100;
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
  const { store, users, operations, isEnough, random, signal } = load;
  const history: Operation[] = [];
  const recent: number[] = [];
  /** The last states of each plant. */
  const states = new Map<number, Known[]>();
  const append = (operation: Operation, etag?: string) => {
    history.push(operation);
    if ('list' in operation || operation.id === undefined) return;
    const { id, effect } = operation;
    if (etag !== undefined && 'content' in effect && effect.content !== undefined) {
      const known = { content: effect.content, etag };
      states.set(id, [...(states.get(id) ?? []), known].slice(-knownStates));
    }
    const isCreated = effect.kind === 'create' || effect.kind === 'assign';
    if (!isCreated || operation.end === Infinity || recent.includes(id)) return;
    recent.push(id);
    if (recent.length > recentIds) recent.shift();
  };
  const anyRequest = requests(load, { history, recent, states });

  using first = new Client(load);
  for (let at = 1; at <= load.ballast; at++) {
    // Escaping doubles the quotes, so this is about 600 characters of JSON.
    const content = { name: `${store} ballast ${at} ${'"'.repeat(160)}`, tag: '"'.repeat(100) };
    const request: Request = { kind: 'create', wanted: sharedIds + at, content };
    const operation = users[0] && (await send(first, load, users[0], request))?.operation;
    if (operation !== undefined) append(operation);
  }
  const [manager] = users;
  if (manager === undefined) throw new Error('there are no users');
  const mirror = new MirrorReader(load, manager, append);
  let known = 0;
  const work = async () => {
    using client = new Client(load);
    while ((known < operations || !isEnough()) && !signal.aborted) {
      const user = users[random(users.length)] as User; // the index is in range
      const sent = await send(client, load, user, anyRequest());
      if (sent?.operation === undefined) continue;
      append(sent.operation, sent.response?.etag);
      if (!('list' in sent.operation)) mirror.note(sent.operation.id, sent);
      if (sent.operation.end !== Infinity) known++;
    }
  };
  await Promise.all(Array.from({ length: load.clients }, work));
  await mirror.stop();
  using last = new Client(load);
  for (const user of users) {
    let list: Operation | undefined;
    while (list === undefined && !signal.aborted) {
      list = (await send(last, load, user, wholeList))?.operation;
    }
    if (list !== undefined) append(list);
  }
  return history;
}

/** A generator of requests to plants that others use too. */
function requests(
  { store, random }: Load,
  {
    history,
    recent,
    states,
  }: {
    history: readonly Operation[];
    recent: readonly number[];
    states: ReadonlyMap<number, Known[]>;
  },
): () => Request {
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
    const content = anyContent();
    if (kind < 14) return { kind: 'update', id, content, condition: anyCondition(id) };
    return { kind: 'create', wanted: random(3) === 0 ? undefined : id, content };
  };
  const anyList = (): Request => ({
    kind: 'list',
    after: random(2) === 0 ? anyId() : 0,
    limit: [undefined, 2, 5, 100, 150][random(5)],
    tag: random(3) === 0 ? anyTag() : undefined,
  });
  return () => {
    // Many concurrent changes, in turn with few changes, so that caches have time to fill.
    const isQuiet = Math.floor(history.length / phaseOperations) % 2 === 1;
    const [changes, gets, lists] = isQuiet ? [8, 20, 10] : [55, 25, 15];
    const kind = random(100);
    if (kind < changes) return anyChange();
    if (kind < changes + gets) return { kind: 'get', id: anyId() };
    return kind < changes + gets + lists ? anyList() : { ...wholeList, limit: 100 };
  };
}

/** Undefined if there is no connection. The operation is undefined if the request failed without an effect. */
export async function send(
  client: Client,
  { count }: Network,
  user: User,
  request: Request,
): Promise<(Sent & { operation: Operation | undefined }) | undefined> {
  const sent = await client.exchange(rawOf(user, request));
  if (sent === undefined) return undefined;
  const { response, failure, isLost, call, end } = sent;
  let shown: Shown | undefined;
  if (isLost) shown = changeOf(request);
  else if (failure === '' && response !== undefined) shown = shownBy(request, response);
  if (isLost || shown === undefined) count(failure);
  else count('list' in shown ? 'list' : shown.effect.kind);
  const operation = shown && { who: user, call, end: isLost ? Infinity : end, ...shown };
  return { ...sent, operation };
}

function rawOf(user: User, request: Request): RawRequest {
  const path = 'id' in request ? `/plants/${request.id}` : '/plants';
  const ifMatch = 'condition' in request ? request.condition?.etag : undefined;
  switch (request.kind) {
    case 'create': {
      const json = { id: request.wanted, ...request.content };
      return { user, method: 'POST', target: `${path}?fields=id,name,tag`, json };
    }
    case 'update': {
      const target = `${path}?fields=name,tag`;
      return { user, method: 'PATCH', target, ifMatch, json: request.content };
    }
    case 'restore':
      return { user, method: 'POST', target: `${path}/restore?fields=name,tag` };
    case 'get':
      return { user, method: 'GET', target: `${path}?fields=name,tag` };
    case 'delete':
      return { user, method: 'DELETE', target: path, ifMatch };
    case 'list': {
      const { after, limit, tag } = request;
      const query = new URLSearchParams({ fields: 'id,name,tag', after: String(after) });
      if (limit !== undefined) query.set('limit', String(limit));
      if (tag !== undefined) query.set('tag', tag);
      return { user, method: 'GET', target: `${path}?${query.toString()}` };
    }
  }
}

type Shown = { id: number | undefined; effect: Effect } | { list: List };

/** What the request does if it is carried out. Undefined for a read. */
function changeOf(request: Request): { id: number | undefined; effect: Effect } | undefined {
  switch (request.kind) {
    case 'create': {
      const { content, wanted: id } = request;
      return { id, effect: { kind: id === undefined ? 'assign' : 'create', content } };
    }
    case 'update': {
      const { id, content, condition } = request;
      return { id, effect: { kind: 'update', content, condition: condition?.content } };
    }
    case 'delete':
      return { id: request.id, effect: { kind: 'delete', condition: request.condition?.content } };
    case 'restore':
      return { id: request.id, effect: { kind: 'restore' } };
    case 'get':
    case 'list':
      return undefined;
  }
}

const success = { create: 201, get: 200, update: 200, delete: 204, restore: 200, list: 200 };

/** Throws if the response is not possible for the request. */
function shownBy(request: Request, { status, headers, body }: RawAnswer): Shown {
  const fail = () => {
    throw new Error(`unexpected response to ${JSON.stringify(request)}: ${status} ${body}`);
  };
  const { kind } = request;
  if (status !== success[kind]) return refusedBy(request, status, body) ?? fail();
  const change = changeOf(request);
  if (kind === 'delete') return change ?? fail();
  if (kind === 'list') return { list: listOf(request, headers, body) ?? fail() };
  const { id = 0, name, tag }: Partial<Listed> & Content = JSON.parse(body);
  const content = { name, tag };
  if (kind === 'get') return { id: request.id, effect: { kind: 'see', content } };
  if (kind === 'restore') return { id: request.id, effect: { kind: 'restore', content } };
  if (name !== request.content.name || tag !== request.content.tag) fail();
  if (kind === 'update') return change ?? fail();
  if (id !== (request.wanted ?? id) || !headers.includes(`location: /plants/${id}`)) fail();
  return change ? { ...change, id } : fail();
}

function refusedBy(request: Request, status: number, body: string): Shown | undefined {
  const [, problem] = /"\/problems\/([a-z-]+)"/.exec(body) ?? [];
  const id = 'wanted' in request ? request.wanted : 'id' in request ? request.id : undefined;
  switch (`${request.kind} ${status} ${problem}`) {
    case 'create 409 id-taken':
      return id === undefined ? undefined : { id, effect: { kind: 'taken' } };
    case 'restore 409 id-taken':
      return { id, effect: { kind: 'held' } };
    case 'restore 404 plant-not-found':
      return { id, effect: { kind: 'nothing' } };
    case 'get 404 plant-not-found':
    case 'update 404 plant-not-found':
    case 'delete 404 plant-not-found':
      return { id, effect: { kind: 'see', content: undefined } };
    case 'update 412 precondition-failed':
    case 'delete 412 precondition-failed': {
      const condition = 'condition' in request ? request.condition?.content : undefined;
      return condition && { id, effect: { kind: 'changed', condition } };
    }
    default:
      return undefined;
  }
}

/** Undefined if the link to the next page is not that of the last plant. */
function listOf(
  { after, limit = Infinity, tag }: Request & { kind: 'list' },
  headers: readonly string[],
  body: string,
): List | undefined {
  const plants: Listed[] = JSON.parse(body);
  const [, next] = /^link: .*[?&]after=(\d+)/m.exec(headers.join('\n')) ?? [];
  if (next !== undefined && Number(next) !== plants.at(-1)?.id) return undefined;
  return { after, limit, tag, plants, upTo: next === undefined ? Infinity : Number(next) };
}
