/**
 * Single plants in SQLite. A change is decided from the tables and written at once, so they are the facts for the next.
 */
import { changeReachOf, reaches, type ReadAccess } from '../../access/access.ts';
import type { Change, ChangeKind, ChangeResults } from '../../plants/changes.ts';
import { decide, type Effect, type Facts, type Rules } from '../../plants/decide.ts';
import { randomId } from '../../plants/ids.ts';
import type { OwnedPlant } from '../../plants/plant-storage.ts';
import type { Grants } from './grants.ts';
import type { PlantCounts } from './plant-counts.ts';
import type { Prepare } from '../driver.ts';
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
  const findOne = prepare<[name: string, tag: string, owner: number]>(
    'SELECT name, tag, owner FROM plants WHERE store = ? AND id = ?',
  );
  const findLargest = prepare<[id: number]>('SELECT max(id) FROM plants WHERE store = ?');
  const insert = prepare(`
    INSERT INTO plants (store, id, owner, tag, name) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING`);
  const updateOne = prepare('UPDATE plants SET name = ?3, tag = ?4 WHERE store = ?1 AND id = ?2');
  const deleteOne = prepare('DELETE FROM plants WHERE store = ? AND id = ?');

  function find(store: number, id: number): OwnedPlant | undefined {
    const row = findOne.get(store, id);
    if (row === undefined) return undefined;
    const [name, tag, owner] = row;
    return { id, name, tag, owner };
  }

  /** Of the store of the current change. */
  let store = 0;
  const facts: Facts = {
    get lastId() {
      return stores.of(store).lastId;
    },
    reachNow(by) {
      const caller = grants.callerSince(by);
      return caller && changeReachOf(caller);
    },
    plant: (id) => find(store, id),
    deleted(id) {
      const deleted = log.findDeleted(store, id);
      if (deleted === undefined) return undefined;
      const { name, tag, owner } = deleted;
      return { id, name, tag, owner };
    },
    key: (user, key) => keys.find(store, user, key),
    count: (owner, quota) => counts.count(store, owner, quota),
    randomFreeId() {
      let id = randomId();
      while (find(store, id) !== undefined) id = randomId();
      return id;
    },
  };

  /** Returns false, without a change, if the id of a new plant is not free. */
  function write({ id, before, after, lastId, key, entry }: Effect): boolean {
    if (after === undefined) deleteOne.run(store, id);
    else if (before !== undefined) updateOne.run(store, id, after.name, after.tag);
    else if (insert.run(store, id, after.owner, after.tag, after.name).changes === 0) return false;
    if (before?.owner !== after?.owner) {
      if (before !== undefined) counts.add(store, before.owner, -1);
      if (after !== undefined) counts.add(store, after.owner, 1);
    }
    const row = stores.raise(store);
    row.lastId = lastId;
    if (entry !== undefined) log.add(store, entry);
    if (key !== undefined) keys.add(store, key, row.version);
    return true;
  }

  function change(next: Change): ChangeResults[ChangeKind] {
    ({ store } = next);
    const { result, effect } = decide(next, facts, rules);
    if (effect === undefined || write(effect)) return result;
    // Another program has inserted a plant above the largest id of the store.
    stores.raise(store).lastId = findLargest.get(store)?.[0] ?? 0;
    return change(next);
  }

  return {
    change,

    find({ store: own, read }: ReadAccess, id: number): OwnedPlant | undefined {
      const plant = find(own, id);
      return plant !== undefined && reaches(read, plant.owner) ? plant : undefined;
    },
  };
}
