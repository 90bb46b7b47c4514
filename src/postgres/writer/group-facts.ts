/**
 * The part of a store that a group of changes depends on, read ahead under the lock of its row, and what the group does to
 * it: the facts for each of its changes.
 */
import type { LogEntry } from '../../log/change-log.ts';
import type { DeletionInLog, Effect, Facts, NewKey } from '../../plants/decide.ts';
import type { StoredKey } from '../../plants/idempotency.ts';
import type { StoredPlant } from '../../plants/plant-storage.ts';
import { defect } from '../../problem.ts';

/** Each user has keys of their own. */
export function keyOf(user: number, key: string): string {
  return `${user} ${key}`;
}

export class GroupFacts implements Facts {
  readonly reachNow: Facts['reachNow'];
  lastId = 0;
  position = 0;
  /** By id, the plants that the changes name, and the deletions of those that are gone. */
  readonly plants = new Map<number, StoredPlant>();
  readonly deletions = new Map<number, DeletionInLog>();
  /** The creates with the keys that the changes name, by `keyOf`. */
  readonly keys = new Map<string, StoredKey>();
  /** The plants of each owner who can get one, and those of the store (undefined), if there is a quota. */
  readonly counts = new Map<number | undefined, number>();
  /** Free ids, if too few are left above `lastId`. */
  randomIds: number[] = [];

  /** Whether there was a plant before, by the ids of those that the group changes. */
  readonly #existed = new Map<number, boolean>();
  /** With the positions of the changes that they belong to. */
  readonly newKeys: (NewKey & { position: number })[] = [];
  /** What happened, in order. */
  readonly entries: LogEntry[] = [];
  /** The positions of deletions whose plants cannot be restored any more. */
  readonly endedDeletions = new Set<number>();

  constructor(reachNow: Facts['reachNow']) {
    this.reachNow = reachNow;
  }

  plant(id: number): StoredPlant | undefined {
    return this.plants.get(id);
  }

  deletion(id: number): DeletionInLog | undefined {
    return this.deletions.get(id);
  }

  key(user: number, key: string): StoredKey | undefined {
    return this.keys.get(keyOf(user, key));
  }

  count(owner: number | undefined): number {
    const plants = this.counts.get(owner);
    if (plants === undefined) throw defect(new Error('the plants of an owner were not counted'));
    return plants;
  }

  randomFreeId(): number {
    const id = this.randomIds.pop();
    if (id === undefined) throw defect(new Error('too few random ids'));
    return id;
  }

  /** Makes the effect of a change part of the facts for the next one. */
  add({ id, before, after, lastId, position, endedDeletion, key, entry }: Effect): void {
    const { plants, deletions, keys } = this;
    this.lastId = lastId;
    this.position = position;
    if (!this.#existed.has(id)) this.#existed.set(id, before !== undefined);
    plants.delete(id);
    deletions.delete(id);
    if (endedDeletion !== undefined) this.endedDeletions.add(endedDeletion);
    if (before !== undefined) this.#count(before.owner, -1);
    if (after !== undefined) {
      plants.set(id, after);
      this.#count(after.owner, 1);
    }
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
    const known = [...this.#existed];
    const of = (wanted: boolean) =>
      known.flatMap(([id, existed]) => (existed === wanted ? (this.plants.get(id) ?? []) : []));
    const deleted = known.filter(([id, existed]) => existed && !this.plants.has(id));
    return { created: of(false), updated: of(true), deleted: deleted.map(([id]) => id) };
  }

  #count(owner: number, added: 1 | -1): void {
    for (const counted of [owner, undefined]) {
      const plants = this.counts.get(counted);
      if (plants !== undefined) this.counts.set(counted, plants + added);
    }
  }
}
