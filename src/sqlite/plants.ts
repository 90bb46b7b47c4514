/**
 * Plants in SQLite: the statements, and what runs them. Transactions are begun by the caller.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { reachesWholeStore, type Identity } from '../access.ts';
import { idMax, type NewPlant, type Plant, type PlantField } from '../plant.ts';
import { idsExhausted, idTaken } from '../problem.ts';
import type { PlantPage, PlantQuery } from '../storage.ts';

// INDEXED BY makes a plan part of the statement: SQLite then refuses one that it could not follow,
// whatever statistics a file may carry. A manager's list is a range of the primary key itself.
const lists = {
  store: 'plants NOT INDEXED WHERE store = :store',
  storeTag: 'plants INDEXED BY plants_by_tag WHERE store = :store AND tag = :tag',
  owner: 'plants INDEXED BY plants_by_owner WHERE store = :store AND owner = :owner',
  ownerTag: `plants INDEXED BY plants_by_owner_tag
             WHERE store = :store AND owner = :owner AND tag = :tag`,
};
type ListKind = keyof typeof lists;

const members: Record<PlantField, string> = {
  id: `'"id":' || id`,
  name: `'"name":' || json_quote(name)`,
  tag: `'"tag":' || json_quote(tag)`,
};

/** A page in one row: the subquery yields its plants in order, and group_concat keeps that order. */
export function listSql(kind: ListKind, fields: readonly PlantField[]): string {
  return `
    SELECT group_concat('{' || ${fields.map((field) => members[field]).join(` || ',' || `)} || '}', ',') AS json,
           count(*) AS count, max(id) AS lastId
    FROM (SELECT id, name, tag FROM ${lists[kind]} AND id > :after AND id <= :upTo
          ORDER BY id LIMIT :limit)`;
}

// One plant is found by its key; `:wholeStore` tells whether another's counts.
export const plantSql = {
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
  readonly #database: DatabaseSync;
  readonly #statements: PlantStatements;
  /** By kind and fields: there are 4 times 15 of them, and most services see one or two. */
  readonly #listStatements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#statements = {
      find: database.prepare(plantSql.find),
      delete: database.prepare(plantSql.delete),
      insert: database.prepare(plantSql.insert),
      assignId: database.prepare(plantSql.assignId),
      raiseLastId: database.prepare(plantSql.raiseLastId),
    };
  }

  create({ store, user: owner }: Identity, { id: wanted, name, tag = '' }: NewPlant): Plant {
    const id = wanted ?? this.#assignId(store);
    const inserted = this.#statements.insert.run({ store, id, owner, tag, name });
    if (inserted.changes === 0) throw idTaken(id);
    if (wanted !== undefined) this.#statements.raiseLastId.run({ store, id });
    return { id, name, tag };
  }

  #assignId(store: number): number {
    const row = this.#statements.assignId.get({ store });
    if (row === undefined) throw idsExhausted();
    return Number(row['id']);
  }

  find(caller: Identity, id: number): Plant | undefined {
    const row = this.#statements.find.get(oneOf(caller, id));
    return row && { ...(row as unknown as Plant) }; // STRICT columns: the types are the schema's
  }

  delete(caller: Identity, id: number): boolean {
    return this.#statements.delete.run(oneOf(caller, id)).changes !== 0;
  }

  list(caller: Identity, { after, upTo = idMax, limit, tag, fields }: PlantQuery): PlantPage {
    const whole = reachesWholeStore(caller);
    const reach = whole ? 'store' : 'owner';
    const kind: ListKind = tag === undefined ? reach : `${reach}Tag`;
    const row = this.#listStatement(kind, fields).get({
      store: caller.store,
      after,
      upTo,
      limit,
      ...(!whole && { owner: caller.user }),
      ...(tag !== undefined && { tag }),
    }) as { json: string | null; count: number; lastId: number | null }; // an aggregate has a row
    return { json: row.json ?? '', count: row.count, lastId: row.lastId ?? after };
  }

  #listStatement(kind: ListKind, fields: readonly PlantField[]): StatementSync {
    const key = `${kind} ${fields.join()}`;
    const statement =
      this.#listStatements.get(key) ?? this.#database.prepare(listSql(kind, fields));
    this.#listStatements.set(key, statement);
    return statement;
  }
}

function oneOf(caller: Identity, id: number) {
  const wholeStore = reachesWholeStore(caller) ? 1 : 0;
  return { store: caller.store, owner: caller.user, id, wholeStore };
}
