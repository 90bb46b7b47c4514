/**
 * The statements that change plants: a group makes all its changes of one kind with one statement.
 */
import type { ChangeKind, ChangeOf, ChangeResults } from '../changes.ts';
import { maxId } from '../ids.ts';
import { idTaken, outcomeUnknown, type Problem } from '../problem.ts';
import { prepared, type Connection, type Statement } from './connection.ts';

interface Definition<K extends ChangeKind, Column extends string> {
  /** `changes` is SQL for the rows of all changes. The statement returns the ids of changed plants. */
  sql: (changes: string) => string;
  columns: Readonly<Record<Column, 'bigint' | 'text'>>;
  /** The parameter rows of one change: one for a creation, one for each owner in reach for a deletion. */
  rows: (change: ChangeOf<K>, idsAfter: number) => readonly Readonly<Record<Column, unknown>>[];
  outcome: ChangeStatement<K>['outcome'];
}

export interface ChangeStatement<K extends ChangeKind> {
  statement: Statement<readonly [id: number]>;
  /** Nothing changes unless the grants of the store have this version. */
  values: (
    store: number,
    grants: number,
    changes: readonly GroupedChange<K>[],
  ) => readonly unknown[];
  /**
   * The outcome of a change to the plant with this id. `changed` are the ids that the statement returned. It is
   * undefined if the group was committed and its response was lost.
   */
  outcome: (
    change: ChangeOf<K>,
    id: number,
    changed: ReadonlySet<number> | undefined,
  ) => ChangeResults[K] | Problem;
}

/** A change in a group. */
export interface GroupedChange<K extends ChangeKind> {
  /** The sequence number of the write (pending.ts). */
  number: number;
  change: ChangeOf<K>;
  /** If the store assigns its id: how many ids are assigned after it in the group. */
  idsAfter: number;
}

/** Statements run in this order. */
export const changeStatements: { readonly [K in ChangeKind]: ChangeStatement<K> } = {
  delete: statementOf('delete', {
    // If `owner` is null, it matches every owner.
    sql: (changes) => `
      DELETE FROM plant_store.plants AS plants
      USING ${changes}
      WHERE plants.store = $1 AND plants.id = changes.id
        AND (changes.owner IS NULL OR plants.owner = changes.owner)
        AND EXISTS (SELECT 1 FROM plant_store.stores WHERE store = $1 AND grants = $2)
      RETURNING plants.id`,
    columns: { id: 'bigint', owner: 'bigint' },
    rows: ([, , reach, id]) => (reach === 'all' ? [null] : reach).map((owner) => ({ id, owner })),
    outcome: (_, id, changed) => changed?.has(id) ?? responseLost(),
  }),
  create: statementOf('create', {
    // The ids assigned to this group are the last ones up to `last_id`. They can exceed the largest valid id.
    sql: (changes) => `
      INSERT INTO plant_store.plants (store, id, owner, tag, name)
      SELECT stores.store, coalesce(changes.id, stores.last_id - changes.ids_after),
             changes.owner, changes.tag, changes.name
      FROM plant_store.stores CROSS JOIN ${changes}
      WHERE stores.store = $1 AND stores.grants = $2
        AND coalesce(changes.id, stores.last_id - changes.ids_after) <= ${maxId}
      ON CONFLICT DO NOTHING
      RETURNING id`,
    columns: { id: 'bigint', ids_after: 'bigint', owner: 'bigint', tag: 'text', name: 'text' },
    rows: ([, , owner, id, name, tag], idsAfter) => [{ id, ids_after: idsAfter, owner, tag, name }],
    outcome: ([, , , requestedId], id, changed) => {
      if (changed !== undefined) return changed.has(id) ? id : idTaken(id);
      return requestedId === undefined ? id : responseLost(); // no other plant can have an assigned id
    },
  }),
};

/**
 * Creates plants whose ids are all known. Citus runs it as it is, and plans each `INSERT ... SELECT` at four times the
 * cost. Other engines can refuse a set in VALUES.
 */
export const createWithIdsSql = prepared<readonly [id: number]>(
  'create_plants_with_ids',
  `
    INSERT INTO plant_store.plants (store, id, owner, tag, name)
    VALUES ($1, unnest($2::bigint[]), unnest($3::bigint[]), unnest($4::text[]), unnest($5::text[]))
    ON CONFLICT DO NOTHING
    RETURNING id`,
);

/** Resolves to the ids of the plants that were created: all that were not taken. Each change has its id. */
export async function createWithIds(
  connection: Connection,
  store: number,
  creates: readonly ChangeOf<'create'>[],
): Promise<ReadonlySet<number>> {
  if (creates.length === 0) return new Set();
  const column = (at: 2 | 3 | 4 | 5) => creates.map((create) => create[at]);
  const values = [store, column(3), column(2), column(5), column(4)];
  const rows = await connection.query(createWithIdsSql, values);
  return new Set(rows.map(([id]) => id));
}

function statementOf<K extends ChangeKind, Column extends string>(
  name: K,
  { sql, columns, rows, outcome }: Definition<K, Column>,
): ChangeStatement<K> {
  const names = Object.keys(columns) as Column[]; // it has no other keys
  const arrays = names.map((column, at) => `$${at + 3}::${columns[column]}[]`);
  const changes = `unnest(${arrays.join(', ')}) AS changes (${names.join(', ')})`;
  return {
    statement: prepared(`${name}_plants`, sql(changes)),
    values: (store, grants, grouped) => {
      const all = grouped.flatMap(({ change, idsAfter }) => rows(change, idsAfter));
      return [store, grants, ...names.map((column) => all.map((row) => row[column]))];
    },
    outcome,
  };
}

function responseLost(): Problem {
  return outcomeUnknown(new Error('the response of the server was lost'));
}
