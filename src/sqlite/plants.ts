/**
 * Plants in SQLite: the statements, and what runs them. Transactions are begun by the caller.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { reachesWholeStore, type Caller } from '../access.ts';
import { idMax, type NewPlant, type Plant } from '../plant.ts';
import { Problem } from '../problem.ts';
import type { PlantQuery } from '../storage.ts';

// INDEXED BY makes a plan part of the statement: SQLite then refuses one that it could not follow,
// whatever statistics a file may carry. A manager's list is a range of the primary key itself.
// One plant is found by its key; `:wholeStore` tells whether another's counts.
export const plantSql = {
  listStore: `
    SELECT id, name, tag FROM plants NOT INDEXED
    WHERE store = :store AND id > :after
    ORDER BY id LIMIT :limit`,
  listStoreTag: `
    SELECT id, name, tag FROM plants INDEXED BY plants_by_tag
    WHERE store = :store AND tag = :tag AND id > :after
    ORDER BY id LIMIT :limit`,
  listOwner: `
    SELECT id, name, tag FROM plants INDEXED BY plants_by_owner
    WHERE store = :store AND owner = :owner AND id > :after
    ORDER BY id LIMIT :limit`,
  listOwnerTag: `
    SELECT id, name, tag FROM plants INDEXED BY plants_by_owner_tag
    WHERE store = :store AND owner = :owner AND tag = :tag AND id > :after
    ORDER BY id LIMIT :limit`,
  find: `
    SELECT id, name, tag FROM plants
    WHERE store = :store AND id = :id AND (owner = :owner OR :wholeStore)`,
  delete: `
    DELETE FROM plants
    WHERE store = :store AND id = :id AND (owner = :owner OR :wholeStore)`,
  insert: `
    INSERT INTO plants (store, id, owner, tag, name) VALUES (:store, :id, :owner, :tag, :name)
    ON CONFLICT DO NOTHING`,
  assignId: `
    UPDATE stores SET last_id = last_id + 1 WHERE store = :store AND last_id < ${idMax}
    RETURNING last_id AS id`,
  raiseLastId: `
    UPDATE stores SET last_id = :id WHERE store = :store AND last_id < :id`,
};

type PlantStatements = Record<keyof typeof plantSql, StatementSync>;

export class Plants {
  readonly #statements: PlantStatements;

  constructor(database: DatabaseSync) {
    this.#statements = {
      listStore: database.prepare(plantSql.listStore),
      listStoreTag: database.prepare(plantSql.listStoreTag),
      listOwner: database.prepare(plantSql.listOwner),
      listOwnerTag: database.prepare(plantSql.listOwnerTag),
      find: database.prepare(plantSql.find),
      delete: database.prepare(plantSql.delete),
      insert: database.prepare(plantSql.insert),
      assignId: database.prepare(plantSql.assignId),
      raiseLastId: database.prepare(plantSql.raiseLastId),
    };
  }

  create({ store, user: owner }: Caller, { id: wanted, name, tag = '' }: NewPlant): Plant {
    const id = wanted ?? this.#assignId(store);
    const inserted = this.#statements.insert.run({ store, id, owner, tag, name });
    if (inserted.changes === 0) {
      throw new Problem(
        'id-taken',
        `The store already has a plant with the id ${id}. Send another id, or none to be given one.`,
      );
    }
    if (wanted !== undefined) this.#statements.raiseLastId.run({ store, id });
    return { id, name, tag };
  }

  #assignId(store: number): number {
    const row = this.#statements.assignId.get({ store });
    if (row === undefined) {
      throw new Problem(
        'ids-exhausted',
        `The store has held a plant with the largest id, ${idMax}, so there is no next one to assign. Send an id of your own.`,
      );
    }
    return Number(row['id']);
  }

  find(caller: Caller, id: number): Plant | undefined {
    const row = this.#statements.find.get(oneOf(caller, id));
    return row && plantOf(row);
  }

  delete(caller: Caller, id: number): boolean {
    return this.#statements.delete.run(oneOf(caller, id)).changes !== 0;
  }

  list(caller: Caller, { after, limit, tag }: PlantQuery): Plant[] {
    const { listStore, listStoreTag, listOwner, listOwnerTag } = this.#statements;
    const range = { store: caller.store, after, limit };
    if (reachesWholeStore(caller)) {
      return tag === undefined
        ? listStore.all(range).map(plantOf)
        : listStoreTag.all({ ...range, tag }).map(plantOf);
    }
    const own = { ...range, owner: caller.user };
    return tag === undefined
      ? listOwner.all(own).map(plantOf)
      : listOwnerTag.all({ ...own, tag }).map(plantOf);
  }
}

function oneOf(caller: Caller, id: number) {
  const wholeStore = reachesWholeStore(caller) ? 1 : 0;
  return { store: caller.store, owner: caller.user, id, wholeStore };
}

function plantOf(row: Record<string, unknown>): Plant {
  // STRICT columns: the types are the schema's.
  return row as Plant;
}
