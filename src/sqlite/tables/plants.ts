/**
 * Single plants in SQLite.
 */
import {
  canChange,
  changeReachOf,
  reaches,
  type ChangeReach,
  type Identified,
  type ReadAccess,
} from '../../access/access.ts';
import { updatedPlant, type ChangeOf, type ChangeResults } from '../../plants/changes.ts';
import { assertCondition } from '../../plants/condition.ts';
import { maxId, randomId } from '../../plants/ids.ts';
import type { OwnedPlant } from '../../plants/plant-storage.ts';
import { idInUse, idTaken } from '../../problem.ts';
import type { Grants } from './grants.ts';
import type { PlantCounts } from './plant-counts.ts';
import type { Prepare } from '../driver.ts';
import type { IdempotencyKeys } from './idempotency-keys.ts';
import type { Log } from './log.ts';
import type { Stores } from './stores.ts';

export function openPlants(
  prepare: Prepare,
  grants: Grants,
  counts: PlantCounts,
  stores: Stores,
  log: Log,
  keys: IdempotencyKeys,
) {
  const find = prepare<[name: string, tag: string, owner: number]>(
    'SELECT name, tag, owner FROM plants WHERE store = ? AND id = ?',
  );
  const findOwnerName = prepare<[name: string]>(`
    SELECT users.name FROM plants JOIN users ON users.store = plants.store AND users.user = plants.owner
    WHERE plants.store = ? AND plants.id = ?`);
  const insert = prepare(`
    INSERT INTO plants (store, id, owner, tag, name) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING`);
  const updateOne = prepare('UPDATE plants SET name = ?3, tag = ?4 WHERE store = ?1 AND id = ?2');
  const deleteOne = prepare('DELETE FROM plants WHERE store = ? AND id = ?');

  /** The reach that the caller has now. */
  function reachNow(by: Identified, before: ChangeReach): ChangeReach {
    const caller = grants.callerSince(by);
    return caller === undefined ? before : changeReachOf(caller);
  }

  /** The plant if its caller can change it now. Throws `plant-read-only`. */
  function findFor([, store, reachBefore, id, by]: ChangeOf<'update' | 'delete'>):
    OwnedPlant | undefined {
    const reach = reachNow(by, reachBefore);
    const [name, tag, owner] = find.get(store, id) ?? [];
    if (name === undefined || tag === undefined || owner === undefined) return undefined;
    return canChange(reach, owner) ? { id, name, tag, owner } : undefined;
  }

  return {
    find({ store, read }: ReadAccess, id: number): OwnedPlant | undefined {
      const row = find.get(store, id);
      if (row === undefined) return undefined;
      const [name, tag, owner] = row;
      return reaches(read, owner) ? { id, name, tag, owner } : undefined;
    },

    findOwner(store: number, id: number): string | undefined {
      return findOwnerName.get(store, id)?.[0];
    },

    create(change: ChangeOf<'create'>): ChangeResults['create'] {
      const [, store, owner, requestedId, by, request, name, tag, key] = change;
      grants.callerSince(by);
      const earlier = key && keys.findPlant(store, owner, key);
      if (earlier !== undefined) return { id: earlier };
      const row = stores.of(store);
      const nextId = row.lastId < maxId ? row.lastId + 1 : undefined;
      const problem = counts.problemOf(store, owner);
      if (problem !== undefined) {
        // A taken id is the reason to report, even if there is no room.
        const isTaken = requestedId !== undefined && find.get(store, requestedId) !== undefined;
        throw isTaken ? idTaken(requestedId) : problem;
      }
      let id = requestedId ?? nextId ?? randomId();
      while (insert.run(store, id, owner, tag, name).changes === 0) {
        if (requestedId !== undefined || nextId !== undefined) throw idTaken(id);
        id = randomId();
      }
      const isUsedAgain = id <= row.lastId;
      row.lastId = Math.max(id, row.lastId);
      counts.add(store, owner, 1);
      log.add(store, 'created', [by, request], { plant: id }, isUsedAgain);
      if (key !== undefined) keys.add(store, owner, key, id, row.version);
      return id;
    },

    /** Returns the plant after the change; undefined if there was none within reach. */
    update(change: ChangeOf<'update'>): OwnedPlant | undefined {
      const [, store, , id, by, request, condition] = change;
      const plant = findFor(change);
      if (plant === undefined) return undefined;
      assertCondition(condition, plant);
      const updated = updatedPlant(plant, change);
      if (updated.name === plant.name && updated.tag === plant.tag) return plant;
      updateOne.run(store, id, updated.name, updated.tag);
      const { owner, name, tag } = plant;
      log.add(store, 'updated', [by, request], { plant: id, owner, name, tag });
      return updated;
    },

    /** Returns whether there was a plant within reach. */
    delete(change: ChangeOf<'delete'>): boolean {
      const [, store, , id, by, request, condition] = change;
      const plant = findFor(change);
      if (plant === undefined) return false;
      assertCondition(condition, plant);
      deleteOne.run(store, id);
      const { owner, name, tag } = plant;
      counts.add(store, owner, -1);
      log.add(store, 'deleted', [by, request], { plant: id, owner, name, tag });
      return true;
    },

    /** Returns the plant; undefined if the log has none within reach. */
    restore([, store, reachBefore, id, by, request]: ChangeOf<'restore'>): OwnedPlant | undefined {
      const reach = reachNow(by, reachBefore);
      const existingOwner = find.get(store, id)?.[2];
      if (existingOwner !== undefined && canChange(reach, existingOwner)) throw idInUse(id);
      const deleted = existingOwner === undefined ? log.findDeleted(store, id) : undefined;
      if (deleted === undefined || !canChange(reach, deleted.owner)) return undefined;
      const { owner, name, tag } = deleted;
      const problem = counts.problemOf(store, owner);
      if (problem !== undefined) throw problem;
      insert.run(store, id, owner, tag, name);
      counts.add(store, owner, 1);
      log.add(store, 'restored', [by, request], { plant: id }, true);
      return { id, name, tag, owner };
    },
  };
}
