/**
 * The part of a store that a group of changes depends on, read ahead under the lock of its row, and what the group does to
 * it: the facts for each of its changes.
 */
import type { ChangeReach, Identified } from '../../access/access.ts';
import type { LogEntry } from '../../log/change-log.ts';
import type { DeletionInLog, Effect, Facts, NewKey, StoredPlant } from '../../plants/decide.ts';
import type { StoredKey } from '../../plants/idempotency.ts';
import { defect, Problem } from '../../problem.ts';

/** Each user has keys of their own. */
export function keyOf(user: number, key: string): string {
  return `${user} ${key}`;
}

interface ReadAhead {
  lastId: number;
  position: number;
  /** Free ids, if too few are left above `lastId`. */
  randomIds: number[];
  /** By the hash of their token: what callers whose grants can have changed can write, or why they must not write. */
  reaches: ReadonlyMap<string, ChangeReach | Problem>;
  /** By id, the plants that the changes name. */
  plants: Map<number, StoredPlant>;
  /** By id, the deletions of plants that are not there. */
  deletions: Map<number, DeletionInLog>;
  /** The creates with the keys that the changes name, by `keyOf`. */
  keys: Map<string, StoredKey>;
  /** The number of plants of each owner who can get one, if there is a quota. */
  userPlants: Map<number, number>;
  /** The number of plants in the store, if there is a quota. */
  storePlants: number;
}

export class GroupFacts implements Facts {
  readonly #state: ReadAhead;
  /** The plants before the group, by id: undefined if there was none. Only those that it changes. */
  readonly #before = new Map<number, StoredPlant | undefined>();
  /** With the positions of the changes that they belong to. */
  readonly newKeys: (NewKey & { position: number })[] = [];
  /** What happened, in order. */
  readonly entries: LogEntry[] = [];
  /** The positions of deletions whose plants cannot be restored any more. */
  readonly endedDeletions = new Set<number>();

  constructor(state: ReadAhead) {
    this.#state = state;
  }

  get lastId(): number {
    return this.#state.lastId;
  }

  get position(): number {
    return this.#state.position;
  }

  get storePlants(): number {
    return this.#state.storePlants;
  }

  reachNow([, token]: Identified): ChangeReach | undefined {
    const reach = this.#state.reaches.get(token);
    if (reach instanceof Problem) throw reach;
    return reach;
  }

  plant(id: number): StoredPlant | undefined {
    return this.#state.plants.get(id);
  }

  deletion(id: number): DeletionInLog | undefined {
    return this.#state.deletions.get(id);
  }

  key(user: number, key: string): StoredKey | undefined {
    return this.#state.keys.get(keyOf(user, key));
  }

  count(owner: number | undefined): number {
    const { userPlants, storePlants } = this.#state;
    const plants = owner === undefined ? storePlants : userPlants.get(owner);
    if (plants === undefined) throw defect(new Error('the plants of an owner were not counted'));
    return plants;
  }

  randomFreeId(): number {
    const id = this.#state.randomIds.pop();
    if (id === undefined) throw defect(new Error('too few random ids'));
    return id;
  }

  /** Makes the effect of a change part of the facts for the next one. */
  add({ id, before, after, lastId, position, endedDeletion, key, entry }: Effect): void {
    const { plants, deletions, keys } = this.#state;
    if (!this.#before.has(id)) this.#before.set(id, before);
    plants.delete(id);
    deletions.delete(id);
    if (endedDeletion !== undefined) this.endedDeletions.add(endedDeletion);
    if (before !== undefined) this.#count(before.owner, -1);
    if (after !== undefined) {
      plants.set(id, after);
      this.#count(after.owner, 1);
    }
    this.#state.lastId = lastId;
    this.#state.position = position;
    if (entry !== undefined) {
      this.entries.push(entry);
      if (before !== undefined && after === undefined) {
        const { position: _, ...plant } = before;
        deletions.set(id, { position, plant });
      }
    }
    if (key === undefined) return;
    this.newKeys.push({ ...key, position });
    keys.set(keyOf(key.user, key.key), key);
  }

  /** What to write: plants that were not there before, those that were, and the ids of those that are gone. */
  results(): { created: StoredPlant[]; updated: StoredPlant[]; deleted: number[] } {
    const { plants } = this.#state;
    const ids = [...this.#before.keys()];
    const existed = (id: number) => this.#before.get(id) !== undefined;
    return {
      created: ids.filter((id) => !existed(id)).flatMap((id) => plants.get(id) ?? []),
      updated: ids.filter(existed).flatMap((id) => plants.get(id) ?? []),
      deleted: ids.filter((id) => existed(id) && !plants.has(id)),
    };
  }

  #count(owner: number, change: 1 | -1): void {
    const { userPlants } = this.#state;
    const plants = userPlants.get(owner);
    if (plants !== undefined) userPlants.set(owner, plants + change);
    this.#state.storePlants += change;
  }
}
