/**
 * Random requests of several users in several stores, sent over a socket to the service and to a
 * plain model in memory, answer by answer.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import {
  defaultScopes,
  scopes,
  shareAccesses,
  type Scope,
  type ShareAccess,
} from '../src/access/access.ts';
import { fold } from '../src/plants/folding.ts';
import { plantFields, type Plant, type PlantField } from '../src/plants/plant.ts';
import type { Answer, TestApp } from './support/app.ts';

/**
 * Two stores; in the first a manager and four members, in the second a member who has a namesake. UTF-16 orders
 * the names of two of them differently than UTF-8. Each user is created by their first request.
 */
const people = [
  { store: 'main', user: 'maria', role: 'manager' },
  { store: 'main', user: 'alice', role: 'member' },
  { store: 'main', user: 'bob', role: 'member' },
  { store: 'main', user: '\ufb00', role: 'member' },
  { store: 'main', user: '𝒳', role: 'member' },
  { store: 'elsewhere', user: 'alice', role: 'member' },
] as const;
type Person = (typeof people)[number];

/** What the tokens of each person grant. The first ones are used most. */
const scopesOfTokens: readonly (readonly Scope[])[] = [
  scopes,
  defaultScopes,
  ['shares:write'],
  ['plants:read'],
];

type Request =
  | {
      kind: 'create';
      id: number | undefined;
      name: string;
      tag: string | undefined;
      fields: Fields;
    }
  | ({ kind: 'find'; id: number; fields: Fields } & Conditions)
  | ({
      kind: 'update';
      id: number;
      name: string | undefined;
      tag: string | null | undefined;
      fields: Fields;
    } & Conditions)
  | ({ kind: 'delete'; id: number } & Conditions)
  | { kind: 'restore'; id: number; fields: Fields }
  | { kind: 'history'; id: number; limit: number | undefined }
  | { kind: 'bin'; limit: number | undefined }
  | {
      kind: 'list';
      limit: number | undefined;
      after: number | undefined;
      tag: string | undefined;
      q: string | undefined;
      fields: Fields;
    }
  | { kind: 'share'; user: string; access: ShareAccess }
  | { kind: 'unshare'; user: string }
  | { kind: 'shares' };
/** The entity tag in a header: that of the plant, that of another state, or any. */
type Condition = 'present' | 'weak' | 'other' | 'any' | undefined;
/** `If-Match` and `If-None-Match`. */
interface Conditions {
  match: Condition;
  noneMatch: Condition;
}
type Fields = readonly PlantField[] | undefined;
/** `token` is an index of scopesOfTokens. */
export type Step = { who: number; token: number } & Request;

// Few ids and tags, so that requests meet the same plants.
const id = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 1, max: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom(2 ** 31, 2 ** 53 - 1) },
);
const text = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
  .filter((one) => /\S/.test(one) && !/\p{Cc}/u.test(one) && one.isWellFormed());
const tag = fc.oneof(fc.constantFrom('', 'a', 'A', 'a b', 'é'), text);
const searched = fc
  .oneof(fc.constantFrom('a', 'É', ' '), text)
  .filter((one) => fold(one).trim() !== '');
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const fields = maybe(fc.shuffledSubarray([...plantFields], { minLength: 1 }));
const condition = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom('present', 'present', 'weak', 'other', 'any' as const) },
);
const conditions = { match: condition, noneMatch: condition };
const anyUser = fc.constantFrom(...new Set(people.map((person) => person.user)), 'nobody');

const anyRequest: fc.Arbitrary<Request> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('create' as const),
      id: maybe(id),
      name: text,
      tag: maybe(tag),
      fields,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('find' as const),
      id,
      fields,
      ...conditions,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('update' as const),
      id,
      name: maybe(text),
      tag: maybe(fc.option(tag)),
      fields,
      ...conditions,
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('delete' as const), id, ...conditions }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('restore' as const), id, fields }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('history' as const),
      id,
      limit: maybe(fc.integer({ min: 1, max: 4 })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('bin' as const),
      limit: maybe(fc.integer({ min: 1, max: 4 })),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('list' as const),
      limit: maybe(fc.integer({ min: 1, max: 6 })),
      after: maybe(fc.oneof(fc.constant(0), id)),
      tag: maybe(tag),
      q: maybe(searched),
      fields,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('share' as const),
      user: anyUser,
      access: fc.constantFrom(...shareAccesses),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('unshare' as const), user: anyUser }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'shares' as const }) },
);

const step: fc.Arbitrary<Step> = fc
  .record({
    who: fc.nat(people.length - 1),
    token: fc.oneof(
      { weight: 8, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.nat(scopesOfTokens.length - 1) },
    ),
    request: anyRequest,
  })
  .map((made) => ({ ...made.request, who: made.who, token: made.token }));

export const steps = (count: number) => fc.array(step, { minLength: count, maxLength: count });

interface Expected {
  status: number;
  /** The body of a success; a refusal is compared by its status and its kind. */
  text?: string;
  problem?: string;
  location?: string;
  link?: string | null;
  /** The state that the entity tag identifies. */
  state?: string;
  /** Without times. */
  history?: readonly Entry[];
  /** All pages, without times. */
  bin?: readonly BinEntry[];
}

type BinEntry = OwnedPlant & { deletedBy: string };

interface Entry {
  event: string;
  user: string;
  before?: { name: string; tag: string; owner: string };
}

type OwnedPlant = Plant & { owner: string };

/** The documented behaviour in its simplest form. */
class Model {
  readonly #plants = new Map<string, Map<number, OwnedPlant>>();
  readonly #lastIds = new Map<string, number>();
  /** By store and id, the plant that was deleted last, and what happened since the last creation. */
  readonly #deleted = new Map<string, OwnedPlant>();
  readonly #histories = new Map<string, Entry[]>();
  #shares: Share[] = [];

  /** `location` is that of the answer: without a larger id, the model does not know which one is assigned. */
  answer(
    person: Person,
    granted: readonly Scope[],
    request: Request,
    location: string | null,
  ): Expected {
    if (!scopesOf[request.kind].some((scope) => granted.includes(scope))) {
      return { status: 403, problem: 'insufficient-scope' };
    }
    switch (request.kind) {
      case 'create':
        return this.#create(person, request, location);
      case 'find': {
        const plant = this.#reachable(person, 'read').find((one) => one.id === request.id);
        if (plant === undefined) return notFound;
        if (isMissed(request)) return changed;
        if (isKnown(request)) return { status: 304, text: '', state: stateOf(plant) };
        return { status: 200, text: json(plant, request.fields), state: stateOf(plant) };
      }
      case 'update':
        return this.#update(person, request);
      case 'delete': {
        const plant = this.#store(person).get(request.id);
        const refused = this.#refusal(person, plant);
        if (plant === undefined || refused !== undefined) return refused ?? notFound;
        if (isMissed(request) || isKnown(request)) return changed;
        this.#store(person).delete(plant.id);
        this.#deleted.delete(keyOf(person, plant)); // so that they are in the order of the deletions
        this.#deleted.set(keyOf(person, plant), plant);
        this.#log(person, plant, 'deleted', plant);
        return { status: 204, text: '' };
      }
      case 'restore':
        return this.#restore(person, request);
      case 'history': {
        const plant =
          this.#store(person).get(request.id) ?? this.#deleted.get(keyOf(person, request));
        if (plant === undefined || !this.#owners(person, 'read')(plant)) return notFound;
        const all = this.#histories.get(keyOf(person, request)) ?? [];
        return { status: 200, history: all.toReversed().slice(0, request.limit) };
      }
      case 'bin':
        return { status: 200, bin: this.#bin(person) };
      case 'list':
        return this.#list(person, request);
      case 'share':
        return this.#share(person, request);
      case 'unshare': {
        const kept = this.#shares.filter((share) => !isBetween(share, person, request.user));
        const isEnded = kept.length < this.#shares.length;
        this.#shares = kept;
        return isEnded ? { status: 204, text: '' } : { status: 404, problem: 'share-not-found' };
      }
      case 'shares': {
        const ofStore = this.#shares.filter(({ store }) => store === person.store);
        const given = ofStore
          .filter(({ owner }) => owner === person.user)
          .map((share) => ({ user: share.user, access: share.access }));
        const received = ofStore
          .filter((share) => share.user === person.user)
          .map(({ owner, access }) => ({ user: owner, access }));
        const byName = { given: given.toSorted(inOrder), received: received.toSorted(inOrder) };
        return { status: 200, text: JSON.stringify(byName) };
      }
    }
  }

  #share({ store, user: owner }: Person, request: Request & { kind: 'share' }): Expected {
    const { user: receiver, access } = request;
    if (receiver === owner) return { status: 400, problem: 'invalid-request' };
    const existing = this.#shares.find(
      (share) => share.store === store && share.owner === owner && share.user === receiver,
    );
    if (existing === undefined) this.#shares.push({ store, owner, user: receiver, access });
    else existing.access = access;
    const status = existing === undefined ? 201 : 200;
    return { status, text: JSON.stringify({ user: receiver, access }) };
  }

  /** Why a plant cannot be changed. */
  #refusal(person: Person, plant: OwnedPlant | undefined): Expected | undefined {
    if (plant !== undefined && this.#owners(person, 'write')(plant)) return undefined;
    const isSeen = plant !== undefined && this.#owners(person, 'read')(plant);
    return isSeen ? readOnly : notFound;
  }

  #update(person: Person, request: Request & { kind: 'update' }): Expected {
    if (request.name === undefined && request.tag === undefined)
      return { status: 400, problem: 'invalid-request' };
    const plant = this.#store(person).get(request.id);
    const refused = this.#refusal(person, plant);
    if (plant === undefined || refused !== undefined) return refused ?? notFound;
    if (isMissed(request) || isKnown(request)) return changed;
    const { name = plant.name, tag: label = plant.tag, fields: asked } = request;
    const updated = { ...plant, name, tag: label ?? '' };
    if (stateOf(updated) !== stateOf(plant)) {
      this.#store(person).set(plant.id, updated);
      this.#log(person, plant, 'updated', plant);
    }
    return { status: 200, text: json(updated, asked), state: stateOf(updated) };
  }

  #restore(person: Person, request: Request & { kind: 'restore' }): Expected {
    const existing = this.#store(person).get(request.id);
    const deleted = this.#deleted.get(keyOf(person, request));
    const last = existing ?? deleted;
    const refused = this.#refusal(person, last);
    if (refused !== undefined) return refused;
    if (existing !== undefined || deleted === undefined)
      return { status: 409, problem: 'id-taken' };
    this.#store(person).set(deleted.id, deleted);
    this.#log(person, deleted, 'restored');
    return { status: 200, text: json(deleted, request.fields), state: stateOf(deleted) };
  }

  /** The newest deletion first. */
  #bin(person: Person): BinEntry[] {
    return [...this.#deleted]
      .filter(
        ([key, plant]) => key === keyOf(person, plant) && this.#owners(person, 'write')(plant),
      )
      .filter(([, plant]) => !this.#store(person).has(plant.id))
      .map(([key, plant]) => {
        return { ...plant, deletedBy: this.#histories.get(key)?.at(-1)?.user ?? '' };
      })
      .toReversed();
  }

  #log(person: Person, plant: Plant, event: string, before?: OwnedPlant): void {
    const key = keyOf(person, plant);
    const earlier = event === 'created' ? [] : (this.#histories.get(key) ?? []);
    const entry = { event, user: person.user };
    const { name = '', tag: label = '', owner = '' } = before ?? {};
    const shown = before === undefined ? entry : { ...entry, before: { name, tag: label, owner } };
    this.#histories.set(key, [...earlier, shown]);
  }

  /** The present state of a plant, whoever asks. */
  stateOf({ store }: Person, wanted: number): string | undefined {
    const plant = this.#store({ store }).get(wanted);
    return plant && stateOf(plant);
  }

  #create(
    person: Person,
    request: Request & { kind: 'create' },
    location: string | null,
  ): Expected {
    const plants = this.#store(person);
    const lastId = this.#lastIds.get(person.store) ?? 0;
    const isFull = lastId === Number.MAX_SAFE_INTEGER;
    const chosen = Number(location?.slice('/plants/'.length));
    const assigned = request.id ?? (isFull ? chosen : lastId + 1);
    if (request.id === undefined)
      assert.ok(Number.isSafeInteger(assigned) && assigned > 0 && !plants.has(assigned));
    if (plants.has(assigned)) return { status: 409, problem: 'id-taken' };
    const plant = { id: assigned, name: request.name, tag: request.tag ?? '', owner: person.user };
    plants.set(assigned, plant);
    this.#lastIds.set(person.store, Math.max(lastId, assigned));
    this.#log(person, plant, 'created');
    const body = json(plant, request.fields);
    return { status: 201, text: body, location: `/plants/${assigned}`, state: stateOf(plant) };
  }

  #list(person: Person, request: Request & { kind: 'list' }): Expected {
    const all = this.#reachable(person, 'read')
      .filter((plant) => plant.id > (request.after ?? 0))
      .filter((plant) => request.tag === undefined || plant.tag === request.tag)
      .filter((plant) => request.q === undefined || isFound(plant, request.q))
      .toSorted((a, b) => a.id - b.id);
    const page = all.slice(0, request.limit);
    const { limit, tag: label, q, fields: asked } = request;
    let next = `/plants?limit=${limit}&after=${page.at(-1)?.id}`;
    if (label !== undefined) next += `&tag=${encodeURIComponent(label)}`;
    if (q !== undefined) next += `&q=${encodeURIComponent(q)}`;
    for (const field of asked ?? []) next += `&fields=${field}`;
    return {
      status: 200,
      text: `[${page.map((plant) => json(plant, request.fields)).join()}]`,
      link: page.length < all.length ? `<${next}>; rel="next"` : null,
    };
  }

  #reachable(person: Person, wanted: ShareAccess) {
    return [...this.#store(person).values()].filter(this.#owners(person, wanted));
  }

  /** Whether the plants of an owner are within reach. */
  #owners({ store, user: caller, role }: Person, wanted: ShareAccess) {
    const owners = this.#shares
      .filter((share) => share.store === store && share.user === caller)
      .filter(({ access }) => wanted === 'read' || access === 'write')
      .map(({ owner }) => owner);
    return ({ owner }: OwnedPlant) =>
      role === 'manager' || owner === caller || owners.includes(owner);
  }

  #store({ store }: { store: string }) {
    const plants = this.#plants.get(store) ?? new Map<number, OwnedPlant>();
    this.#plants.set(store, plants);
    return plants;
  }
}

/** Whether `If-Match` does not hold. */
function isMissed({ match }: Conditions): boolean {
  return match === 'weak' || match === 'other';
}

/** Whether `If-None-Match` does not hold. */
function isKnown({ noneMatch }: Conditions): boolean {
  return noneMatch !== undefined && noneMatch !== 'other';
}

/** What an entity tag identifies. */
function stateOf({ owner, name, tag: label }: OwnedPlant): string {
  return JSON.stringify([owner, name, label]);
}

function keyOf({ store }: Person, { id: wanted }: { id: number }): string {
  return `${store} ${wanted}`;
}

interface Share {
  store: string;
  owner: string;
  user: string;
  access: ShareAccess;
}

function isBetween({ store, owner, user: receiver }: Share, person: Person, other: string) {
  const isGiven = owner === person.user && receiver === other;
  const isReceived = owner === other && receiver === person.user;
  return store === person.store && (isGiven || isReceived);
}

/** By code points. */
function inOrder(a: { user: string }, b: { user: string }): number {
  return Buffer.compare(Buffer.from(a.user), Buffer.from(b.user));
}

/** Each scope that is enough. */
const scopesOf: Record<Request['kind'], readonly Scope[]> = {
  create: ['plants:write'],
  find: ['plants:read'],
  update: ['plants:write'],
  delete: ['plants:write'],
  restore: ['plants:write'],
  history: ['plants:read'],
  bin: ['plants:read'],
  list: ['plants:read'],
  share: ['shares:write'],
  unshare: ['shares:write'],
  shares: ['plants:read', 'shares:write'],
};

const notFound = { status: 404, problem: 'plant-not-found' };
const readOnly = { status: 403, problem: 'plant-read-only' };
const changed = { status: 412, problem: 'precondition-failed' };

function isFound({ name, tag: label }: Plant, q: string): boolean {
  return [name, label].some((one) => fold(one).includes(fold(q)));
}

function json(plant: Plant, wanted: Fields): string {
  const members = (wanted ?? ['name', 'tag']).map(
    (field) =>
      `${JSON.stringify(field)}:${JSON.stringify({ ...plant, owner: undefined, access: undefined }[field])}`,
  );
  return `{${members.join()}}`;
}

function queryOf(request: Request): string {
  const query = new URLSearchParams();
  if (request.kind === 'list') {
    const { limit, after, tag: label, q } = request;
    if (limit !== undefined) query.set('limit', String(limit));
    if (after !== undefined) query.set('after', String(after));
    if (label !== undefined) query.set('tag', label);
    if (q !== undefined) query.set('q', q);
  }
  if (request.kind === 'history' && request.limit !== undefined) {
    query.set('limit', String(request.limit));
  }
  if ('fields' in request && request.fields) query.set('fields', request.fields.join());
  return query.toString();
}

let runs = 0;

/** Sends every step to the service, to stores of its own, and compares the answers with the model. */
export async function agree(app: TestApp, all: readonly Step[]): Promise<void> {
  const run = ++runs;
  const tokens = new Map<string, string>();
  const model = new Model();
  const etags = new EntityTags();
  for (const one of all) {
    const person = people[one.who];
    const granted = scopesOfTokens[one.token];
    assert.ok(person && granted);
    const { user: name, role, store } = person;
    const key = `${one.who} ${one.token}`;
    const token =
      tokens.get(key) ??
      (await app.token(name, { role, store: `${store} ${run}`, scopes: granted }));
    tokens.set(key, token);
    const state = 'id' in one && one.id !== undefined ? model.stateOf(person, one.id) : undefined;
    const answer = await send(app, token, one, etags.of(store, state));
    const expected = model.answer(person, granted, one, answer.headers.get('location'));
    assert.deepEqual(seen(answer, expected), expected, JSON.stringify(one));
    etags.compare(store, expected.state, answer.headers.get('etag'));
  }
}

/** Each state of a plant has one entity tag, and no two of them have the same. */
class EntityTags {
  readonly #tags = new Map<string, string>();
  readonly #states = new Map<string, string>();

  /** The entity tag of a state of which there was a response. */
  of(store: string, state: string | undefined): string {
    return this.#tags.get(`${store} ${state}`) ?? '"never"';
  }

  compare(store: string, state: string | undefined, etag: string | null): void {
    if (state === undefined) return assert.equal(etag, null);
    assert.ok(etag);
    const known = `${store} ${state}`;
    assert.equal(this.#tags.get(known) ?? etag, etag, known);
    // Users of two stores can have the same number.
    const inStore = `${store} ${etag}`;
    assert.equal(this.#states.get(inStore) ?? state, state, etag);
    this.#tags.set(known, etag);
    this.#states.set(inStore, state);
  }
}

function headersOf({ match, noneMatch }: Conditions, etag: string): Record<string, string> {
  const values = { present: etag, weak: `W/${etag}`, other: '"other"', any: '*' };
  return {
    ...(match && { 'if-match': values[match] }),
    ...(noneMatch && { 'if-none-match': values[noneMatch] }),
  };
}

function send({ call }: TestApp, token: string, request: Request, etag: string): Promise<Answer> {
  const query = queryOf(request);
  const search = query === '' ? '' : `?${query}`;
  switch (request.kind) {
    case 'create': {
      const { id: wanted, name, tag: label } = request;
      return call('POST', `/plants${search}`, { token, json: { name, id: wanted, tag: label } });
    }
    case 'find': {
      const headers = headersOf(request, etag);
      return call('GET', `/plants/${request.id}${search}`, { token, headers });
    }
    case 'update': {
      const { id: wanted, name, tag: label } = request;
      const headers = headersOf(request, etag);
      return call('PATCH', `/plants/${wanted}${search}`, {
        token,
        json: { name, tag: label },
        headers,
      });
    }
    case 'delete': {
      const headers = headersOf(request, etag);
      return call('DELETE', `/plants/${request.id}`, { token, headers });
    }
    case 'restore':
      return call('POST', `/plants/${request.id}/restore${search}`, { token });
    case 'history':
      return call('GET', `/plants/${request.id}/history${search}`, { token });
    case 'bin':
      return wholeBin(call, token, request.limit);
    case 'list':
      return call('GET', `/plants${search}`, { token });
    case 'share': {
      const { user: receiver, access } = request;
      return call('PUT', `/shares/${encodeURIComponent(receiver)}`, { token, json: { access } });
    }
    case 'unshare':
      return call('DELETE', `/shares/${encodeURIComponent(request.user)}`, { token });
    case 'shares':
      return call('GET', '/shares', { token });
  }
}

/** The answer to the last page, with the plants of all of them. Each page but the last one is full. */
async function wholeBin(
  call: TestApp['call'],
  token: string,
  limit: number | undefined,
): Promise<Answer> {
  const plants: unknown[] = [];
  for (let target = limit === undefined ? '/bin' : `/bin?limit=${limit}`; ;) {
    const answer = await call('GET', target, { token });
    if (answer.status !== 200) return answer;
    const page = answer.json as unknown[];
    plants.push(...page);
    const [, next] = /^<(.*)>; rel="next"$/.exec(answer.headers.get('link') ?? '') ?? [];
    if (next === undefined) {
      assert.ok(page.length <= (limit ?? Infinity));
      return { ...answer, json: plants };
    }
    assert.equal(page.length, limit);
    target = next;
  }
}

/** Of an answer, what the model has an opinion on. */
function seen({ status, text: body, json: parsed, headers }: Answer, expected: Expected): Expected {
  const type = status < 400 ? undefined : (parsed as { type: string }).type;
  return {
    status,
    ...('text' in expected && { text: body }),
    ...('problem' in expected && { problem: type?.replace('/problems/', '') ?? '' }),
    ...('location' in expected && { location: headers.get('location') ?? '' }),
    ...('state' in expected && { state: expected.state }), // EntityTags compares it
    ...('history' in expected && { history: withoutTimes(parsed) }),
    ...('bin' in expected && { bin: binOf(parsed) }),
    ...('link' in expected && { link: headers.get('link') }),
  };
}

function withoutTimes(entries: unknown): Entry[] {
  return (entries as (Entry & { at: string })[]).map(({ at, ...entry }) => {
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < 600_000, at);
    return entry;
  });
}

function binOf(entries: unknown): BinEntry[] {
  return (entries as (BinEntry & { deletedAt: string })[]).map(({ deletedAt, ...entry }) => {
    assert.ok(Math.abs(Date.parse(deletedAt) - Date.now()) < 600_000, deletedAt);
    return entry;
  });
}
