/**
 * The part of a store that a group of changes depends on. The row of the store is locked, so this part stays the same
 * until the group is committed, and all outcomes are decided here.
 */
import { canChange } from '../../access/access.ts';
import type { ChangeEvent } from '../../log/change-log.ts';
import {
  updatedPlant,
  type Change,
  type ChangeKind,
  type ChangeOf,
  type ChangeResults,
} from '../../plants/changes.ts';
import { assertCondition } from '../../plants/condition.ts';
import { maxId } from '../../plants/ids.ts';
import type { OwnedPlant } from '../../plants/plant-storage.ts';
import { plantOfKey, type CreateKey, type StoredKey } from '../../plants/idempotency.ts';
import { defect, idInUse, idTaken, Problem } from '../../problem.ts';
import { quotaProblem, type Quotas } from '../../plants/quota.ts';
import type { LogEntry } from '../tables/log.ts';

/** The result of a change, or why it is refused. */
export type Outcome = ChangeResults[ChangeKind] | Problem;

/** A key to store. */
export interface NewKey extends StoredKey {
  user: number;
  key: string;
}

/** Each user has keys of their own. */
export function keyOf(user: number, key: string): string {
  return `${user} ${key}`;
}

interface StoreState {
  /** The largest id that the store has ever held. */
  lastId: number;
  /** Free ids, if too few are left above `lastId`. */
  randomIds: number[];
  /** By id, the plants that the changes name. */
  plants: Map<number, OwnedPlant>;
  /** By id, the plants that can be restored. */
  deleted: Map<number, OwnedPlant>;
  /** The creates with the keys that the changes name, by `keyOf`. */
  keys: Map<string, StoredKey>;
  /** The number of plants of each owner, if there is a quota. */
  userPlants: Map<number, number>;
  /** The number of plants in the store, if there is a quota. */
  storePlants: number;
}

export class Decisions {
  readonly #quotas: Quotas;
  readonly #hasLog: boolean;
  readonly state: StoreState;
  /** The plants before the group, by id. */
  readonly #before: ReadonlyMap<number, OwnedPlant>;
  /** The ids that were changed. */
  readonly #changed = new Set<number>();
  /** The keys of creates. */
  readonly newKeys: NewKey[] = [];
  /** What happened, in order. */
  readonly entries: LogEntry[] = [];

  constructor(quotas: Quotas, hasLog: boolean, state: StoreState) {
    this.#quotas = quotas;
    this.#hasLog = hasLog;
    this.state = state;
    this.#before = new Map(state.plants);
  }

  /** Decides the outcome of the next change. */
  apply(change: Change): Outcome {
    try {
      switch (change[0]) {
        case 'create':
          return this.#create(change);
        case 'update':
          return this.#update(change);
        case 'delete':
          return this.#delete(change);
        case 'restore':
          return this.#restore(change);
      }
    } catch (error) {
      if (error instanceof Problem) return error;
      throw error;
    }
  }

  /** What to write: plants that were not there before, those that were, and the ids of those that are gone. */
  results(): { created: OwnedPlant[]; updated: OwnedPlant[]; deleted: number[] } {
    const ids = [...this.#changed];
    const { plants } = this.state;
    const existed = (id: number) => this.#before.has(id);
    return {
      created: ids.filter((id) => !existed(id)).flatMap((id) => plants.get(id) ?? []),
      updated: ids.filter(existed).flatMap((id) => plants.get(id) ?? []),
      deleted: ids.filter((id) => existed(id) && !plants.has(id)),
    };
  }

  #create(change: ChangeOf<'create'>): ChangeResults['create'] {
    const { lastId, randomIds, plants } = this.state;
    const [, , owner, requestedId, , , name, tag, key] = change;
    const earlier = key && this.state.keys.get(keyOf(owner, key[0]));
    if (key && earlier) return { id: plantOfKey(earlier, key) };
    const id = requestedId ?? (lastId < maxId ? lastId + 1 : randomIds.pop());
    if (id === undefined) throw defect(new Error('too few random ids'));
    if (plants.has(id)) throw idTaken(id);
    this.#assertRoom(owner);
    const isUsedAgain = id <= lastId;
    this.state.lastId = Math.max(lastId, id);
    this.#add({ id, name, tag, owner });
    this.#log('created', change, id, undefined, isUsedAgain);
    if (key !== undefined) this.#addKey(owner, key, id);
    return id;
  }

  #update(change: ChangeOf<'update'>): OwnedPlant | undefined {
    const plant = this.#find(change);
    if (plant === undefined) return undefined;
    const updated = updatedPlant(plant, change);
    if (updated.name === plant.name && updated.tag === plant.tag) return plant;
    this.state.plants.set(plant.id, updated);
    this.#changed.add(plant.id);
    this.#log('updated', change, plant.id, plant);
    return updated;
  }

  #delete(change: ChangeOf<'delete'>): boolean {
    const plant = this.#find(change);
    if (plant === undefined) return false;
    const { id, owner } = plant;
    this.state.plants.delete(id);
    if (this.#hasLog) this.state.deleted.set(id, plant);
    this.#changed.add(id);
    this.#count(owner, -1);
    this.#log('deleted', change, id, plant);
    return true;
  }

  #restore(change: ChangeOf<'restore'>): OwnedPlant | undefined {
    const [, , reach, id] = change;
    const existing = this.state.plants.get(id);
    const last = existing ?? this.state.deleted.get(id);
    if (last === undefined || !canChange(reach, last.owner)) return undefined;
    if (existing !== undefined) throw idInUse(id);
    this.#assertRoom(last.owner);
    this.#add(last);
    this.#log('restored', change, id, undefined, true);
    return last;
  }

  /** The plant if it is within reach. Throws `precondition-failed`. */
  #find([, , reach, id, , , condition]: ChangeOf<'update' | 'delete'>): OwnedPlant | undefined {
    const plant = this.state.plants.get(id);
    if (plant === undefined || !canChange(reach, plant.owner)) return undefined;
    assertCondition(condition, plant);
    return plant;
  }

  #addKey(user: number, [key, fingerprint]: CreateKey, plant: number): void {
    this.state.keys.set(keyOf(user, key), { fingerprint, plant });
    this.newKeys.push({ user, key, fingerprint, plant });
  }

  #add(plant: OwnedPlant): void {
    this.state.plants.set(plant.id, plant);
    this.#changed.add(plant.id);
    this.#count(plant.owner, 1);
  }

  #assertRoom(owner: number): void {
    const { userPlants, storePlants } = this.state;
    const owned = userPlants.get(owner) ?? 0;
    const problem = quotaProblem(this.#quotas, (scope) => (scope === 'user' ? owned : storePlants));
    if (problem !== undefined) throw problem;
  }

  /** Without a log, only a `border` is an entry: an id is in use again. */
  #log(
    event: ChangeEvent,
    [, , , , by, request]: Change,
    plant: number,
    before?: OwnedPlant,
    isBorder = false,
  ): void {
    if (!this.#hasLog && !isBorder) return;
    const { owner, name, tag } = before ?? {};
    this.entries.push({ event, by, request, plant, owner, name, tag });
  }

  #count(owner: number, change: 1 | -1): void {
    const { userPlants } = this.state;
    userPlants.set(owner, (userPlants.get(owner) ?? 0) + change);
    this.state.storePlants += change;
  }
}
