/**
 * Single plants in SQLite. A change is decided from the tables and written at once, so they are the facts for the next.
 */
import { changeReachOf, reaches, type ReadAccess } from '../../access/access.ts';
import { keptSince } from '../../log/change-log.ts';
import type { Change } from '../../plants/changes.ts';
import {
  decide,
  type Decision,
  type Effect,
  type Facts,
  type NewKey,
  type Rules,
} from '../../plants/decide.ts';
import {
  plantOf,
  textColumns,
  textFields,
  textValues,
  type PlantRow,
} from '../../plants/fields.ts';
import { keepKeysMs } from '../../plants/idempotency.ts';
import { randomId } from '../../plants/ids.ts';
import type { OwnedPlant, StoredPlant } from '../../plants/plant-storage.ts';
import { deletionOf, logSql } from '../../sql/log.ts';
import type { Prepare } from '../driver.ts';
import { isKeyInUse } from '../errors.ts';
import type { Grants } from './grants.ts';
import type { PlantCounts } from './plant-counts.ts';
import type { Log, Statements } from './statements.ts';
import type { Stores } from './stores.ts';

/** Each new key removes up to two old ones, so that the table stays short. */
const maxRemovedKeys = 2;

interface Parts {
  grants: Grants;
  counts: PlantCounts;
  stores: Stores;
  statements: Statements;
  log: Log;
}

/** `keepMs` as in `WriteSettings`. */
export function openPlants(
  prepare: Prepare,
  { grants, counts, stores, statements, log }: Parts,
  rules: Rules,
  keepMs: number | undefined,
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
  const findKey = prepare<[fingerprint: string, plant: number]>(`
    SELECT fingerprint, plant FROM idempotency_keys
    WHERE store = ?1 AND key_hash = ?2 AND user_id = ?3 AND at >= ?4 AND position > (
      SELECT removed_position FROM users WHERE users.store = ?1 AND users.id = ?3)`);
  const setKey = prepare(`
    INSERT OR REPLACE INTO idempotency_keys (store, key_hash, user_id, fingerprint, plant, position, at)
    VALUES (?, ?, ?, ?, ?, ?, ?)`);
  const removeOldKeys = prepare(`
    DELETE FROM idempotency_keys WHERE (store, key_hash, user_id) IN (
      SELECT store, key_hash, user_id FROM idempotency_keys INDEXED BY idempotency_keys_by_time
      WHERE store = ? AND at < ? ORDER BY at LIMIT ${maxRemovedKeys})`);

  function find(store: number, id: number): StoredPlant | undefined {
    const row = findOne.get(store, id);
    if (row === undefined) return undefined;
    const [position, , owner, ...texts] = row;
    return { ...plantOf(id, owner, texts), position };
  }

  const factsOf = (store: number): Facts => ({
    lastId: stores.of(store).lastId,
    position: stores.of(store).position,
    reachNow(by) {
      const caller = grants.callerSince(store, by);
      return caller && changeReachOf(caller);
    },
    plant: (id) => find(store, id),
    deletion(id) {
      const [row] = statements.all(logSql.findDeletions, [store, [id]]);
      return row && deletionOf(row, keptSince(keepMs));
    },
    key(user, key) {
      const row = findKey.get(store, key, user, Date.now() - keepKeysMs);
      return row && { fingerprint: row[0], plant: row[1] };
    },
    count: (owner, quota) => counts.count(store, owner, quota),
    randomFreeId() {
      let id = randomId();
      while (find(store, id) !== undefined) id = randomId();
      return id;
    },
  });

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

  /** `position` is that of the create: a later user of the name does not get the key. */
  function addKey(
    store: number,
    { user, key, fingerprint, plant }: NewKey,
    position: number,
  ): void {
    const nowMs = Date.now();
    removeOldKeys.run(store, nowMs - keepKeysMs);
    setKey.run(store, key, user, fingerprint, plant, position, nowMs);
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
    if (endedDeletion !== undefined) statements.run(logSql.endDeletions, [store, [endedDeletion]]);
    if (entry !== undefined) log.add(store, entry);
    if (key !== undefined) addKey(store, key, position);
    return true;
  }

  function change(next: Change): Decision['result'] {
    const { store } = next;
    const { result, effect } = decide(next, factsOf(store), rules);
    if (effect === undefined || write(store, effect)) return result;
    // Another program has inserted a plant above the largest id of the store.
    const { position: before } = stores.of(store);
    stores.set(store, { position: before, lastId: findLargest.get(store)?.[0] ?? 0 });
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
