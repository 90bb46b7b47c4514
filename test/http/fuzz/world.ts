/**
 * A plain model of the stores: what was acknowledged, and who may see it.
 */
import type { Access, NewPlant } from './json.ts';
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
  readonly #stores = new Map<string, { plants: Map<number, Plant>; lastId: number }>();
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

  /** Every plant that the person may read, or delete, in ascending order of id. */
  reachable(person: Person, wanted: Access): Plant[] {
    return [...this.#store(person.store).plants.values()]
      .filter(({ owner }) => this.reaches(person, wanted, owner))
      .toSorted((one, other) => one.id - other.id);
  }

  /** Whether the person may read, or delete, the plants of this owner in the same store. */
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

  create({ store, user }: Person, id: number, { name, tag }: NewPlant): void {
    const held = this.#store(store);
    held.plants.set(id, { id, name, tag, owner: user });
    held.lastId = Math.max(held.lastId, id);
  }

  delete({ store }: Person, id: number): void {
    this.#store(store).plants.delete(id);
  }

  #store(name: string) {
    const known = this.#stores.get(name) ?? { plants: new Map<number, Plant>(), lastId: 0 };
    this.#stores.set(name, known);
    return known;
  }
}

export function plantText(
  plant: Plant | (NewPlant & { id: number }),
  fields: readonly Field[] = ['name', 'tag'],
): string {
  return `{${fields.map((field) => `"${field}":${JSON.stringify(plant[field])}`).join()}}`;
}
