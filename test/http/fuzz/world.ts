/**
 * A plain model of the stores: what was acknowledged, and who may see it.
 */
import type { NewPlant } from './json.ts';
import type { Field } from './target.ts';

export interface Person {
  store: string;
  user: string;
  role: 'member' | 'manager';
}

export interface Grant {
  person: Person;
  scopes: readonly string[];
}

export interface Plant {
  id: number;
  name: string;
  tag: string;
  owner: string;
}

export class World {
  /** The valid tokens and their users. */
  readonly grants: ReadonlyMap<string, Grant>;
  readonly #stores = new Map<string, { plants: Map<number, Plant>; lastId: number }>();

  constructor(grants: ReadonlyMap<string, Grant>) {
    this.grants = grants;
  }

  /** Every plant that the person may read and delete, in ascending order of id. */
  reachable({ store, user, role }: Person): Plant[] {
    return [...this.#store(store).plants.values()]
      .filter(({ owner }) => role === 'manager' || owner === user)
      .toSorted((one, other) => one.id - other.id);
  }

  /** The id that a new plant gets; undefined if none is left. */
  nextId({ store }: Person): number | undefined {
    const { lastId } = this.#store(store);
    return lastId < Number.MAX_SAFE_INTEGER ? lastId + 1 : undefined;
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
