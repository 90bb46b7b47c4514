/**
 * Changes to plants, in one form for every storage. They are tuples, because they are copied to the writer thread
 * of SQLite: with objects, most of the cost would be copying their keys.
 *
 * Each engine decides all changes in their transaction: sqlite/tables/plants.ts, which `apply` in sqlite/writer/thread.ts
 * calls, and postgres/writer/decisions.ts, whose decisions postgres/writer/store-changes.ts writes. Only `copy` bypasses this.
 */
import type { Caller, Identified, Reach } from '../access/access.ts';
import type { NewPlant, Plant } from './plant.ts';

/** The first four elements of each are its kind, the store, the owner or the reach, and the id. */
export type Change =
  | readonly [
      'create',
      store: number,
      owner: number,
      id: number | undefined, // if undefined, the store assigns the next one
      name: string,
      tag: string,
      by: Identified,
    ]
  | readonly ['delete', store: number, reach: Reach, id: number, by: Identified];

export type ChangeKind = Change[0];
export type ChangeOf<Kind extends ChangeKind> = Extract<Change, readonly [Kind, ...unknown[]]>;

/** What a change of each kind resolves to. Its conditions are checked in its transaction. */
export interface ChangeResults {
  /** The id of the plant. */
  create: number;
  /** Whether the plant existed within reach. */
  delete: boolean;
}

export function creationOf(
  { store, user, identified }: Caller,
  { id, name, tag = '' }: NewPlant,
): ChangeOf<'create'> {
  return ['create', store, user, id, name, tag, identified];
}

/** How the caller of a change was identified. */
export function byOf(change: Change): Identified {
  return change[0] === 'create' ? change[6] : change[4];
}

/** The plant that the change created, with the id that it got. */
export function createdPlant([, , , , name, tag]: ChangeOf<'create'>, id: number): Plant {
  return { id, name, tag };
}
