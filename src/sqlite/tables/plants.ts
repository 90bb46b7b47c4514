/**
 * Single plants in SQLite. A change is decided from the tables and written at once, so they are the facts for the next.
 */
import { changeReachOf, reaches, type Identified, type ReadAccess } from '../../access/access.ts';
import type { Change, ChangeKind, ChangeResults } from '../../plants/changes.ts';
import {
  decide,
  type Effect,
  type Facts,
  type Rules,
  type StoredPlant,
} from '../../plants/decide.ts';
import {
  plantOf,
  textColumns,
  textFields,
  textValues,
  type PlantRow,
} from '../../plants/fields.ts';
import { randomId } from '../../plants/ids.ts';
import type { OwnedPlant } from '../../plants/plant-storage.ts';
import type { Grants } from './grants.ts';
import type { PlantCounts } from './plant-counts.ts';
import type { Prepare } from '../driver.ts';
import { isKeyInUse } from '../errors.ts';
import type { IdempotencyKeys } from './idempotency-keys.ts';
import type { Log } from './log.ts';
import type { Stores } from './stores.ts';

export function openPlants(
  prepare: Prepare,
  rules: Rules,
  grants: Grants,
  counts: PlantCounts,
  stores: Stores,
  log: Log,
  keys: IdempotencyKeys,
) {
  const findOne = prepare<[position: number, ...PlantRow]>(
    `SELECT position, id, owner, ${textColumns} FROM plants WHERE store = ? AND id = ?`,
  );
  const findLargest = prepare<[id: number]>('SELECT max(id) FROM plants WHERE store = ?');
  const insert = prepare(`
    INSERT INTO plants (store, id, owner, position, ${textColumns})
    VALUES (?, ?, ?, ?, ${textFields.map(() => '?').join()})`);
  const updateOne = prepare(`
    UPDATE plants SET position = ?, ${textFields.map((field) => `${field} = ?`).join()}
    WHERE store = ? AND id = ?`);
  const deleteOne = prepare('DELETE FROM plants WHERE store = ? AND id = ?');

  function find(store: number, id: number): StoredPlant | undefined {
    const row = findOne.get(store, id);
    if (row === undefined) return undefined;
    const [position, , owner, ...texts] = row;
    return { ...plantOf(id, owner, texts), position };
  }

  class StoreFacts implements Facts {
    readonly #store: number;

    constructor(store: number) {
      this.#store = store;
    }

    get lastId() {
      return stores.of(this.#store).lastId;
    }

    get position() {
      return stores.of(this.#store).position;
    }

    reachNow(by: Identified) {
      const caller = grants.callerSince(this.#store, by);
      return caller && changeReachOf(caller);
    }

    plant(id: number) {
      return find(this.#store, id);
    }

    deletion(id: number) {
      return log.findDeletion(this.#store, id);
    }

    key(user: number, key: string) {
      return keys.find(this.#store, user, key);
    }

    count(owner: number | undefined, quota: number) {
      return counts.count(this.#store, owner, quota);
    }

    randomFreeId() {
      let id = randomId();
      while (find(this.#store, id) !== undefined) id = randomId();
      return id;
    }
  }

  /** Returns false if the id is in use. */
  function add(store: number, plant: StoredPlant): boolean {
    const { id, owner, position } = plant;
    try {
      insert.run(store, id, owner, position, ...textValues(plant));
      return true;
    } catch (error) {
      if (isKeyInUse(error)) return false;
      throw error;
    }
  }

  /** Returns false, without a change, if the id of a new plant is not free. */
  function write(store: number, effect: Effect): boolean {
    const { id, before, after, position, endedDeletion, key, entry } = effect;
    if (after === undefined) deleteOne.run(store, id);
    else if (before !== undefined) updateOne.run(position, ...textValues(after), store, id);
    else if (!add(store, after)) return false;
    if (before?.owner !== after?.owner) {
      if (before !== undefined) counts.add(store, before.owner, -1);
      if (after !== undefined) counts.add(store, after.owner, 1);
    }
    stores.set(store, effect);
    if (endedDeletion !== undefined) log.endDeletion(store, endedDeletion);
    if (entry !== undefined) log.add(store, entry);
    if (key !== undefined) keys.add(store, key, position);
    return true;
  }

  function change(next: Change): ChangeResults[ChangeKind] {
    const { store } = next;
    const { result, effect } = decide(next, new StoreFacts(store), rules);
    if (effect === undefined || write(store, effect)) return result;
    // Another program has inserted a plant above the largest id of the store.
    const { position } = stores.of(store);
    stores.set(store, { position, lastId: findLargest.get(store)?.[0] ?? 0 });
    return change(next);
  }

  return {
    change,

    find({ store: own, read }: ReadAccess, id: number): OwnedPlant | undefined {
      const found = find(own, id);
      if (found === undefined || !reaches(read, found.owner)) return undefined;
      const { position: _, ...plant } = found;
      return plant;
    },
  };
}
