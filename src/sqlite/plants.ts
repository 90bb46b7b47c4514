/**
 * Single plants in SQLite.
 */
import type { DatabaseSync } from 'node:sqlite';
import { reaches, soleOwner, type ReadAccess } from '../access.ts';
import type { ChangeOf } from '../changes.ts';
import { maxId, randomId } from '../ids.ts';
import type { Plant } from '../plant.ts';
import { idTaken } from '../problem.ts';
import type { Grants } from './grants.ts';
import type { PlantCounts } from './plant-counts.ts';
import { Statements } from './driver.ts';

export class Plants extends Statements {
  readonly #grants: Grants;
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
  readonly #readLastId = this.prepare<[lastId: number]>(
    'SELECT last_id FROM stores WHERE store = ?',
  );
  readonly #raiseLastId = this.prepare(
    'UPDATE stores SET last_id = ?2 WHERE store = ?1 AND last_id < ?2',
  );
  readonly #insert = this.prepare(`
    INSERT INTO plants (store, id, owner, tag, name) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING`);
  readonly #delete = this.prepare('DELETE FROM plants WHERE store = ? AND id = ? AND owner = ?');

  /**
   * The largest ids that the stores of this transaction have ever held. Each is read and written once, however many
   * plants are created.
   */
  readonly #lastIds = new Map<number, number>();

  constructor(database: DatabaseSync, grants: Grants, counts?: PlantCounts) {
    super(database);
    this.#grants = grants;
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

  /** Call it at the start of a transaction: other processes can have raised the ids since. */
  begin(): void {
    this.#lastIds.clear();
  }

  /** Call it at the end of a transaction. */
  flush(): void {
    for (const [store, lastId] of this.#lastIds) this.#raiseLastId.run(store, lastId);
  }

  /** Returns the id of the new plant. */
  create([, store, owner, requestedId, name, tag, by]: ChangeOf<'create'>): number {
    this.#grants.callerSince(by);
    const lastId = this.#lastIds.get(store) ?? this.#readLastId.get(store)?.[0] ?? 0;
    const nextId = lastId < maxId ? lastId + 1 : undefined;
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
    this.#lastIds.set(store, Math.max(id, lastId));
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
