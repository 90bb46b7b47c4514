/**
 * A plain model of the stores: what was acknowledged, and who may see it.
 */
import type { Access, NewPlant, PlantPatch } from './json.ts';
import type { Field } from './target.ts';

export interface Person {
  store: string;
  user: string;
  role: 'member' | 'manager';
}

export interface Grant {
  /** The id of the token. */
  id: string;
  person: Person;
  scopes: readonly string[];
}

/** A token as its user sees it. */
export interface ModelToken extends Grant {
  label: string;
  state: 'active' | 'expired' | 'revoked';
}

export interface Plant {
  id: number;
  name: string;
  tag: string;
  owner: string;
}

/** A change to a plant without its time. */
export interface Change {
  event: 'created' | 'updated' | 'deleted' | 'restored';
  user: string;
  before?: { name: string; tag: string; owner: string };
}

interface Store {
  plants: Map<number, Plant>;
  lastId: number;
  /** By id, the plant that was deleted last, and the changes since the last creation. */
  deleted: Map<number, Plant>;
  changes: Map<number, Change[]>;
}

interface Share {
  store: string;
  owner: string;
  user: string;
  access: Access;
}

function isOf(share: Share, { store, owner, user }: Omit<Share, 'access'>): boolean {
  return share.store === store && share.owner === owner && share.user === user;
}

function inOrder(one: { user: string }, other: { user: string }): number {
  return Buffer.compare(Buffer.from(one.user), Buffer.from(other.user));
}

export class World {
  /** The valid tokens and their users. */
  readonly grants: Map<string, Grant>;
  readonly #tokens: ModelToken[];
  readonly #stores = new Map<string, Store>();
  /** The entity tags of the states of plants that were shown, and the other way round. */
  readonly #tags = new Map<string, string>();
  readonly #states = new Map<string, string>();
  #shares: Share[] = [];

  constructor(grants: ReadonlyMap<string, Grant>, tokens: readonly ModelToken[]) {
    this.grants = new Map(grants);
    this.#tokens = [...tokens];
  }

  tokensOf({ store, user }: Person): ModelToken[] {
    return this.#tokens.filter(({ person }) => person.store === store && person.user === user);
  }

  addToken(token: ModelToken): void {
    this.#tokens.push(token);
  }

  revoke(token: ModelToken): void {
    token.state = 'revoked';
    for (const [text, { id }] of this.grants) if (id === token.id) this.grants.delete(text);
  }

  /** Every plant that the person may read, or change, in ascending order of id. */
  reachable(person: Person, wanted: Access): Plant[] {
    return [...this.#store(person.store).plants.values()]
      .filter(({ owner }) => this.reaches(person, wanted, owner))
      .toSorted((one, other) => one.id - other.id);
  }

  /** Whether the person may read, or change, the plants of this owner in the same store. */
  reaches({ store, user, role }: Person, wanted: Access, owner: string): boolean {
    const allows = (share: Share) =>
      share.store === store && share.owner === owner && share.user === user;
    const isShared = this.#shares.some(
      (share) => allows(share) && (wanted === 'read' || share.access === 'write'),
    );
    return role === 'manager' || owner === user || isShared;
  }

  sharesWith({ store, user: owner }: Person, user: string): boolean {
    return this.#shares.some((one) => isOf(one, { store, owner, user }));
  }

  receivesFrom({ store, user }: Person, owner: string): boolean {
    return this.#shares.some((one) => isOf(one, { store, owner, user }));
  }

  /** Both sides in ascending order of the other's name, by code point. */
  sharesOf({ store, user }: Person) {
    const all = this.#shares.filter((one) => one.store === store);
    const given = all.filter(({ owner }) => owner === user);
    const received = all.filter((one) => one.user === user);
    return {
      given: given.map((one) => ({ user: one.user, access: one.access })).toSorted(inOrder),
      received: received.map(({ owner, access }) => ({ user: owner, access })).toSorted(inOrder),
    };
  }

  share({ store, user: owner }: Person, user: string, access: Access): void {
    const share = { store, owner, user };
    this.#shares = this.#shares.filter((one) => !isOf(one, share));
    this.#shares.push({ ...share, access });
  }

  unshare({ store, user }: Person, other: string): void {
    const ends = [
      { store, owner: user, user: other },
      { store, owner: other, user },
    ];
    this.#shares = this.#shares.filter((one) => !ends.some((end) => isOf(one, end)));
  }

  /** The id that a new plant gets. */
  nextId({ store }: Person): number {
    return this.#store(store).lastId + 1;
  }

  has({ store }: Person, id: number): boolean {
    return this.#store(store).plants.has(id);
  }

  find({ store }: Person, id: number): Plant | undefined {
    return this.#store(store).plants.get(id);
  }

  findDeleted({ store }: Person, id: number): Plant | undefined {
    return this.#store(store).deleted.get(id);
  }

  /** The plants that the person can restore, as responses show them but for the times, the newest deletion first. */
  binOf(person: Person): object[] {
    const { plants, deleted } = this.#store(person.store);
    return [...deleted.values()]
      .filter(({ id, owner }) => !plants.has(id) && this.reaches(person, 'write', owner))
      .map(({ id, name, tag, owner }) => {
        const deletedBy = this.changesOf(person, id).at(-1)?.user;
        return { id, name, tag, owner, deletedBy };
      })
      .toReversed();
  }

  /** Oldest first. */
  changesOf({ store }: Person, id: number): readonly Change[] {
    return this.#store(store).changes.get(id) ?? [];
  }

  create({ store, user }: Person, id: number, { name, tag }: NewPlant): void {
    const held = this.#store(store);
    held.plants.set(id, { id, name, tag, owner: user });
    held.lastId = Math.max(held.lastId, id);
    held.changes.set(id, [{ event: 'created', user }]);
  }

  update(person: Person, plant: Plant, patch: PlantPatch): void {
    const updated = { ...plant, ...patch };
    if (updated.name === plant.name && updated.tag === plant.tag) return;
    this.#store(person.store).plants.set(plant.id, updated);
    this.#add(person, 'updated', plant.id, plant);
  }

  delete(person: Person, id: number): void {
    const { plants, deleted } = this.#store(person.store);
    const plant = plants.get(id);
    if (plant === undefined) return;
    plants.delete(id);
    deleted.delete(id); // so that they are in the order of the deletions
    deleted.set(id, plant);
    this.#add(person, 'deleted', id, plant);
  }

  restore(person: Person, plant: Plant): void {
    this.#store(person.store).plants.set(plant.id, plant);
    this.#add(person, 'restored', plant.id);
  }

  /** The plant in a response to this grant. */
  textOf(plant: Plant, { person, scopes }: Grant, fields: readonly Field[] = ['name', 'tag']) {
    const canWrite = scopes.includes('plants:write') && this.reaches(person, 'write', plant.owner);
    const shown = { ...plant, access: canWrite ? 'write' : 'read' };
    return `{${fields.map((field) => `"${field}":${JSON.stringify(shown[field])}`).join()}}`;
  }

  /** The entity tag of this state, if it was shown. */
  tagOf(state: string): string | undefined {
    return this.#tags.get(state);
  }

  /** Keeps the entity tag of a state. Returns whether no other state has it, and the state no other. */
  learn({ store }: Person, state: string, tag: string): boolean {
    const key = `${store} ${tag}`;
    const isSame = (this.#tags.get(state) ?? tag) === tag;
    const isOwn = (this.#states.get(key) ?? state) === state;
    this.#tags.set(state, tag);
    this.#states.set(key, state);
    return isSame && isOwn;
  }

  #add({ store, user }: Person, event: Change['event'], id: number, before?: Plant): void {
    const { changes } = this.#store(store);
    const { name = '', tag = '', owner = '' } = before ?? {};
    const change = { event, user, ...(before !== undefined && { before: { name, tag, owner } }) };
    changes.set(id, [...(changes.get(id) ?? []), change]);
  }

  #store(name: string): Store {
    const known = this.#stores.get(name) ?? {
      plants: new Map<number, Plant>(),
      lastId: 0,
      deleted: new Map<number, Plant>(),
      changes: new Map<number, Change[]>(),
    };
    this.#stores.set(name, known);
    return known;
  }
}

/** What an entity tag identifies. */
export function stateOf({ store }: Person, { owner, name, tag }: Omit<Plant, 'id'>): string {
  return JSON.stringify([store, owner, name, tag]);
}
