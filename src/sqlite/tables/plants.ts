/**
 * Single plants in SQLite.
 */
import { reaches, soleOwner, type ReadAccess } from '../../access/access.ts';
import type { ChangeOf } from '../../plants/changes.ts';
import { maxId, randomId } from '../../plants/ids.ts';
import type { Plant } from '../../plants/plant.ts';
import { idTaken } from '../../problem.ts';
import type { Grants } from './grants.ts';
import type { PlantCounts } from './plant-counts.ts';
import type { Prepare } from '../driver.ts';

export function openPlants(prepare: Prepare, grants: Grants, counts: PlantCounts) {
  const find = prepare<[name: string, tag: string, owner: number]>(
    'SELECT name, tag, owner FROM plants WHERE store = ? AND id = ?',
  );
  const findOwnerName = prepare<[name: string]>(`
    SELECT users.name FROM plants JOIN users ON users.store = plants.store AND users.user = plants.owner
    WHERE plants.store = ? AND plants.id = ?`);
  const readLastId = prepare<[lastId: number]>('SELECT last_id FROM stores WHERE store = ?');
  const raiseLastId = prepare('UPDATE stores SET last_id = ?2 WHERE store = ?1 AND last_id < ?2');
  const insert = prepare(`
    INSERT INTO plants (store, id, owner, tag, name) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING`);
  const deleteOne = prepare('DELETE FROM plants WHERE store = ? AND id = ? AND owner = ?');

  /**
   * The largest ids that the stores of this transaction have ever held. Each is read and written once, however many
   * plants are created.
   */
  const lastIds = new Map<number, number>();

  return {
    find({ store, read }: ReadAccess, id: number): Plant | undefined {
      const row = find.get(store, id);
      if (row === undefined) return undefined;
      const [name, tag, owner] = row;
      return reaches(read, owner) ? { id, name, tag } : undefined;
    },

    findOwner(store: number, id: number): string | undefined {
      return findOwnerName.get(store, id)?.[0];
    },

    /** Call it at the start of a transaction: other processes can have raised the ids since. */
    begin(): void {
      lastIds.clear();
    },

    /** Call it at the end of a transaction. */
    flush(): void {
      for (const [store, lastId] of lastIds) raiseLastId.run(store, lastId);
    },

    /** Returns the id of the new plant. */
    create([, store, owner, requestedId, name, tag, by]: ChangeOf<'create'>): number {
      grants.callerSince(by);
      const lastId = lastIds.get(store) ?? readLastId.get(store)?.[0] ?? 0;
      const nextId = lastId < maxId ? lastId + 1 : undefined;
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
      lastIds.set(store, Math.max(id, lastId));
      counts.add(store, owner, 1);
      return id;
    },

    /** Returns whether there was a plant within reach. */
    delete([, store, reachBefore, id, by]: ChangeOf<'delete'>): boolean {
      const reach = grants.callerSince(by)?.write ?? reachBefore;
      // Not RETURNING: it would slow down every delete, and this lookup only those with several owners in reach.
      const owner = soleOwner(reach) ?? find.get(store, id)?.[2];
      if (owner === undefined || !reaches(reach, owner)) return false;
      if (deleteOne.run(store, id, owner).changes === 0) return false;
      counts.add(store, owner, -1);
      return true;
    },
  };
}
