/**
 * Plants in SQLite: the statements, and what runs them. Transactions are begun by the caller.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { reachesWholeStore, type Identity } from '../access.ts';
import { idMax } from '../ids.ts';
import type { NewPlant, Plant, PlantField } from '../plant.ts';
import { idTaken } from '../problem.ts';
import type { PlantPage, PlantQuery } from '../storage.ts';
import type { Step } from '../walk.ts';
import type { Stores } from './stores.ts';

// INDEXED BY makes a plan part of the statement: SQLite then refuses one that it could not follow,
// whatever statistics a file may carry. A manager's list is a range of the primary key itself.
const lists = {
  store: 'plants NOT INDEXED WHERE store = ?1',
  storeTag: 'plants INDEXED BY plants_by_tag WHERE store = ?1 AND tag = ?5',
  owner: 'plants INDEXED BY plants_by_owner WHERE store = ?1 AND owner = ?5',
  // No index has a member's plants by tag: it would be one more tree for each create (decision 7).
  ownerTag: 'plants INDEXED BY plants_by_owner WHERE store = ?1 AND owner = ?5 AND tag = ?6',
};
type ListKind = keyof typeof lists;

/** Plants that a step walks over: a fraction of a millisecond, also if none of them is of the list. */
const stepPlants = 500;

/**
 * A page in one row. First the id of its last plant is looked for, which is none where the list ends
 * before; then the range up to it is read in the order of its index; then one look beyond. `?4 - 1`,
 * because SQLite plans a statement anew at each run when its LIMIT or OFFSET is a parameter alone, which
 * takes longer than the page itself. Of two upper bounds on an id SQLite uses one and reads on to it,
 * so the range of the page has no more than its own.
 */
export function listSql(kind: ListKind, fields: readonly PlantField[]): string {
  const members = fields.map((field) => `'${field}', ${field}`).join();
  const range = `${lists[kind]} AND id <= ?3`;
  return `
    SELECT json_group_array(json_object(${members})), count(*), last,
           EXISTS (SELECT 1 FROM ${range} AND id > last)
    FROM (SELECT (SELECT id FROM ${range} AND id > ?2 ORDER BY id LIMIT 1 OFFSET ?4 - 1) AS last)
         CROSS JOIN ${lists[kind]} AND id > ?2 AND id <= coalesce(last, ?3)`;
}

/** What a row of it holds. */
type PageRow = [array: string, plants: number, last: number | null, moreFollow: number];

// One plant is found by its key; `?4` tells whether another's counts.
export const plantSql = {
  find: `
    SELECT id, name, tag FROM plants
    WHERE store = ?1 AND id = ?2 AND (owner = ?3 OR ?4)`,
  findOwner: `
    SELECT owner FROM plants
    WHERE store = ? AND id = ?`,
  delete: `
    DELETE FROM plants
    WHERE store = ? AND id = ? AND owner = ?`,
  endOfStep: `
    SELECT id FROM plants INDEXED BY plants_by_owner
    WHERE store = ? AND owner = ? AND id > ? AND id <= ? ORDER BY id LIMIT 1 OFFSET ${stepPlants - 1}`,
  insert: `
    INSERT INTO plants (store, id, owner, tag, name) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING`,
};

type PlantStatements = Record<keyof typeof plantSql, StatementSync>;

export class Plants {
  readonly #database: DatabaseSync;
  readonly #stores: Stores;
  readonly #statements: PlantStatements;
  /** By kind and fields: there are 4 times 15 of them, and most services see one or two. */
  readonly #listStatements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, stores: Stores) {
    this.#database = database;
    this.#stores = stores;
    this.#statements = {
      find: database.prepare(plantSql.find),
      findOwner: database.prepare(plantSql.findOwner),
      delete: database.prepare(plantSql.delete),
      endOfStep: database.prepare(plantSql.endOfStep),
      insert: database.prepare(plantSql.insert),
    };
  }

  create({ store, user: owner }: Identity, { id: wanted, name, tag = '' }: NewPlant): Plant {
    const row = this.#stores.row(store);
    const id = wanted ?? row.assignId();
    const inserted = this.#statements.insert.run(store, id, owner, tag, name);
    if (inserted.changes === 0) throw idTaken(id);
    row.useId(id);
    row.changed(owner);
    return { id, name, tag };
  }

  find(caller: Identity, id: number): Plant | undefined {
    const row = this.#statements.find.get(...oneOf(caller, id));
    return row && { ...(row as unknown as Plant) }; // STRICT columns: the types are the schema's
  }

  delete(caller: Identity, id: number): boolean {
    const { store, user } = caller;
    // Not RETURNING: it costs each delete more than this costs those of managers.
    const owner = reachesWholeStore(caller)
      ? Number(this.#statements.findOwner.get(store, id)?.['owner'] ?? 0) // users are numbered from 1
      : user;
    if (this.#statements.delete.run(store, id, owner).changes === 0) return false;
    this.#stores.row(store).changed(owner);
    return true;
  }

  list(caller: Identity, query: PlantQuery): PlantPage {
    const [array, , last, moreFollow] = this.#page(caller, query);
    return { json: array.slice(1, -1), next: moreFollow === 1 ? (last ?? undefined) : undefined };
  }

  /** The part of a member's list by tag that is within the next plants of the member. */
  step(caller: Identity, query: PlantQuery): Step {
    const { after, upTo = idMax } = query;
    const end = this.#statements.endOfStep.get(caller.store, caller.user, after, upTo);
    const walkedTo = end === undefined ? undefined : Number(end['id']);
    const [array, plants, last, moreFollow] = this.#page(caller, {
      ...query,
      upTo: walkedTo ?? upTo,
    });
    return {
      json: array.slice(1, -1),
      plants,
      last: last ?? undefined,
      moreFollow: moreFollow === 1,
      walkedTo,
    };
  }

  #page(caller: Identity, { after, upTo = idMax, limit, tag, fields }: PlantQuery): PageRow {
    const whole = reachesWholeStore(caller);
    const reach = whole ? 'store' : 'owner';
    const kind: ListKind = tag === undefined ? reach : `${reach}Tag`;
    const values: (number | string)[] = [caller.store, after, upTo, limit];
    if (!whole) values.push(caller.user);
    if (tag !== undefined) values.push(tag);
    return this.#listStatement(kind, fields).get(...values) as unknown as PageRow; // an aggregate has a row
  }

  #listStatement(kind: ListKind, fields: readonly PlantField[]): StatementSync {
    const key = `${kind} ${fields.join()}`;
    let statement = this.#listStatements.get(key);
    if (statement === undefined) {
      statement = this.#database.prepare(listSql(kind, fields));
      statement.setReturnArrays(true); // an object for each row costs as much as reading it
      this.#listStatements.set(key, statement);
    }
    return statement;
  }
}

function oneOf(caller: Identity, id: number): [number, number, number, number] {
  return [caller.store, id, caller.user, reachesWholeStore(caller) ? 1 : 0];
}
