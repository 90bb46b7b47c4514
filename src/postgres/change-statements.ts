/**
 * The changeStatements of changes to plants. A group makes all its changes of a kind with one statement.
 */
import type { ChangeKind, ChangeOf, ChangeResults } from '../changes.ts';
import { idMax } from '../ids.ts';
import { idsExhausted, idTaken, outcomeUnknown, type Problem } from '../problem.ts';
import { prepared, type Statement } from './connection.ts';

interface Definition<K extends ChangeKind, Column extends string> {
  /** `changes` are the rows of all changes. Returns the ids of the plants that were changed. */
  sql: (changes: string) => string;
  columns: Readonly<Record<Column, 'bigint' | 'text'>>;
  /** The rows of a change, at most one of which matches a plant. */
  rows: (change: ChangeOf<K>, ahead: number) => readonly Readonly<Record<Column, unknown>>[];
  outcome: Kind<K>['outcome'];
}

export interface Kind<K extends ChangeKind> {
  statement: Statement<readonly [id: number]>;
  values: (store: number, changes: readonly Placed<K>[]) => readonly unknown[];
  /**
   * What became of a change to the plant with this id. `changed` are the ids that the statement returned, or
   * undefined if the group is committed and its answer was lost.
   */
  outcome: (
    change: ChangeOf<K>,
    id: number,
    changed: ReadonlySet<number> | undefined,
  ) => ChangeResults[K] | Problem;
}

/** A change in a group. */
export interface Placed<K extends ChangeKind> {
  number: number;
  change: ChangeOf<K>;
  /** Where its id is assigned: how many assigned ids of the group come after it. */
  ahead: number;
}

/** Statements run in this order. */
export const changeStatements: { readonly [K in ChangeKind]: Kind<K> } = {
  delete: kind('delete', {
    // An owner that is null does not count.
    sql: (changes) => `
      DELETE FROM plant_store.plants AS plants
      USING ${changes}
      WHERE plants.store = $1 AND plants.id = changes.id
        AND (changes.owner IS NULL OR plants.owner = changes.owner)
      RETURNING plants.id`,
    columns: { id: 'bigint', owner: 'bigint' },
    rows: ([, , reach, id]) => (reach === 'all' ? [null] : reach).map((owner) => ({ id, owner })),
    outcome: (_, id, changed) => changed?.has(id) ?? answerLost(),
  }),
  create: kind('create', {
    // The last of the ids that the store has given out by now are those of this group. Above the largest
    // that there can be, there are none.
    sql: (changes) => `
      INSERT INTO plant_store.plants (store, id, owner, tag, name)
      SELECT stores.store, coalesce(changes.id, stores.last_id - changes.ahead),
             changes.owner, changes.tag, changes.name
      FROM plant_store.stores CROSS JOIN ${changes}
      WHERE stores.store = $1 AND coalesce(changes.id, stores.last_id - changes.ahead) <= ${idMax}
      ON CONFLICT DO NOTHING
      RETURNING id`,
    columns: { id: 'bigint', ahead: 'bigint', owner: 'bigint', tag: 'text', name: 'text' },
    rows: ([, , owner, id, name, tag], ahead) => [{ id, ahead, owner, tag, name }],
    outcome: ([, , , wanted], id, changed) => {
      if (id > idMax) return idsExhausted();
      if (changed !== undefined) return changed.has(id) ? id : idTaken(id);
      return wanted === undefined ? id : answerLost(); // an id that was assigned is free
    },
  }),
};

function kind<K extends ChangeKind, Column extends string>(
  name: K,
  { sql, columns, rows, outcome }: Definition<K, Column>,
): Kind<K> {
  const names = Object.keys(columns) as Column[]; // its keys
  const arrays = names.map((column, at) => `$${at + 2}::${columns[column]}[]`);
  const changes = `unnest(${arrays.join(', ')}) AS changes (${names.join(', ')})`;
  return {
    statement: prepared(`${name}_plants`, sql(changes)),
    values: (store, placed) => {
      const all = placed.flatMap(({ change, ahead }) => rows(change, ahead));
      return [store, ...names.map((column) => all.map((row) => row[column]))];
    },
    outcome,
  };
}

function answerLost(): Problem {
  return outcomeUnknown(new Error('the answer of the server was lost'));
}
