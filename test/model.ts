/**
 * The documented behaviour in its simplest form: a model of the service in memory.
 */
import assert from 'node:assert/strict';
import type { Role, Scope, ShareAccess } from '../src/access/access.ts';
import { fold } from '../src/plants/folding.ts';
import type { Plant, PlantField } from '../src/plants/plant.ts';
import type { Kind, Of, Person, Request } from './requests.ts';

export interface Expected {
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

export type BinEntry = OwnedPlant & { deletedBy: string };

export interface Entry {
  event: string;
  user: string;
  before?: { name: string; tag: string; owner: string };
}

type OwnedPlant = Plant & { owner: string };

export class Model {
  readonly #plants = new Map<string, Map<number, OwnedPlant>>();
  readonly #lastIds = new Map<string, number>();
  /** By store and id, the plant that was deleted last, and what happened since the last creation. */
  readonly #deleted = new Map<string, OwnedPlant>();
  readonly #histories = new Map<string, Entry[]>();
  #shares: Share[] = [];
  /** Of those who have another one than at first. */
  readonly roles = new Map<Person, Role>();

  /** `location` is that of the answer: without a larger id, the model does not know which one is assigned. */
  answer(
    person: Person,
    granted: readonly Scope[],
    request: Exclude<Request, Of<'role'>>,
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
        const sharesOf = (side: 'owner' | 'user', other: 'owner' | 'user') =>
          ofStore
            .filter((share) => share[side] === person.user)
            .map((share) => ({ user: share[other], access: share.access }))
            .toSorted(inOrder);
        const both = { given: sharesOf('owner', 'user'), received: sharesOf('user', 'owner') };
        return { status: 200, text: JSON.stringify(both) };
      }
    }
  }

  #share({ store, user: owner }: Person, request: Of<'share'>): Expected {
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

  #update(person: Person, request: Of<'update'>): Expected {
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

  #restore(person: Person, request: Of<'restore'>): Expected {
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

  #create(person: Person, request: Of<'create'>, location: string | null): Expected {
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

  #list(person: Person, request: Of<'list'>): Expected {
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
  #owners(person: Person, wanted: ShareAccess) {
    const { store, user: caller, role } = person;
    const owners = this.#shares
      .filter((share) => share.store === store && share.user === caller)
      .filter(({ access }) => wanted === 'read' || access === 'write')
      .map(({ owner }) => owner);
    return ({ owner }: OwnedPlant) =>
      (this.roles.get(person) ?? role) === 'manager' || owner === caller || owners.includes(owner);
  }

  #store({ store }: { store: string }) {
    const plants = this.#plants.get(store) ?? new Map<number, OwnedPlant>();
    this.#plants.set(store, plants);
    return plants;
  }
}

/** Whether `If-Match` does not hold. */
function isMissed({ match }: Pick<Of<'find'>, 'match'>): boolean {
  return match === 'weak' || match === 'other';
}

/** Whether `If-None-Match` does not hold. */
function isKnown({ noneMatch }: Pick<Of<'find'>, 'noneMatch'>): boolean {
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
const scopesOf: Record<Exclude<Kind, 'role'>, readonly Scope[]> = {
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

function json(plant: Plant, wanted: readonly PlantField[] | undefined): string {
  const members = (wanted ?? ['name', 'tag']).map(
    (field) =>
      `${JSON.stringify(field)}:${JSON.stringify({ ...plant, owner: undefined, access: undefined }[field])}`,
  );
  return `{${members.join()}}`;
}
