/**
 * Single plants in SQLite.
 */
import type { DatabaseSync } from 'node:sqlite';
import { reaches, soleOwner, type ReadAccess } from '../access.ts';
import type { ChangeOf } from '../changes.ts';
import { randomId } from '../ids.ts';
import type { Plant } from '../plant.ts';
import { idTaken } from '../problem.ts';
import type { Grants } from './grants.ts';
import type { PlantCounts } from './plant-counts.ts';
import type { Stores } from './stores.ts';
import { Table } from './table.ts';

export class Plants extends Table {
  readonly #grants: Grants;
  readonly #stores: Stores;
  /** Undefined without quotas. */
  readonly #counts: PlantCounts | undefined;
  readonly #find = this.prepare<[name: string, tag: string, owner: number]>(
    'SELECT name, tag, owner FROM plants WHERE store = ? AND id = ?',
  );
  readonly #findOwner = this.prepare<[owner: number]>(
    'SELECT owner FROM plants WHERE store = ? AND id = ?',
  );
  readonly #findOwnerName = this.prepare<[name: string]>(`
    SELECT users.name FROM plants JOIN users ON users.store = plants.store AND users.user = plants.owner
    WHERE plants.store = ? AND plants.id = ?`);
  readonly #insert = this.prepare(`
    INSERT INTO plants (store, id, owner, tag, name) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING`);
  readonly #delete = this.prepare('DELETE FROM plants WHERE store = ? AND id = ? AND owner = ?');

  constructor(database: DatabaseSync, grants: Grants, stores: Stores, counts?: PlantCounts) {
    super(database);
    this.#grants = grants;
    this.#stores = stores;
    this.#counts = counts;
  }

  find({ store, read }: ReadAccess, id: number): Plant | undefined {
    const row = this.#find.get(store, id);
    if (row === undefined) return undefined;
    const [name, tag, owner] = row;
    return reaches(read, owner) ? { id, name, tag } : undefined;
  }

  findOwner(store: number, id: number): string | undefined {
    return this.#findOwnerName.get(store, id)?.[0];
  }

  /** Returns the id of the new plant. */
  create([, store, owner, requestedId, name, tag, by]: ChangeOf<'create'>): number {
    this.#grants.callerSince(by);
    const nextId = this.#stores.nextId(store);
    const problem = this.#counts?.problemOf(store, owner);
    if (problem !== undefined) {
      // An id that is taken is the reason that is reported, even if there is no room.
      const isTaken =
        requestedId !== undefined && this.#findOwner.get(store, requestedId) !== undefined;
      throw isTaken ? idTaken(requestedId) : problem;
    }
    let id = requestedId ?? nextId ?? randomId();
    while (this.#insert.run(store, id, owner, tag, name).changes === 0) {
      if (requestedId !== undefined || nextId !== undefined) throw idTaken(id);
      id = randomId();
    }
    this.#stores.raiseLastId(store, id);
    this.#counts?.add(store, owner, 1);
    return id;
  }

  /** Returns whether there was a plant within reach. */
  delete([, store, reachBefore, id, by]: ChangeOf<'delete'>): boolean {
    const reach = this.#grants.callerSince(by)?.write ?? reachBefore;
    // Not RETURNING: it would slow down every delete, and this lookup only those with several owners in reach.
    const owner = soleOwner(reach) ?? this.#findOwner.get(store, id)?.[0];
    if (owner === undefined || !reaches(reach, owner)) return false;
    if (this.#delete.run(store, id, owner).changes === 0) return false;
    this.#counts?.add(store, owner, -1);
    return true;
  }
}
