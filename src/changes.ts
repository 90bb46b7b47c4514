/**
 * Changes to plants, in one shape for every storage. They are tuples, because they also travel to threads:
 * the names of an object's members are copied with each, which takes longer than all the rest.
 *
 * Each engine makes all changes in one place, within their transaction: `apply` in sqlite/writes.ts, and the
 * statements of `kinds` in postgres/change-statements.ts. PostgreSQL gets COMMIT before it returns the ids, so
 * what must be written with a change is part of its statement. Only `copy` adds plants in another way.
 */
import type { Identity, Reach } from './access.ts';
import type { NewPlant, Plant } from './plant.ts';

/** Each begins with its kind, its store, whose plants it concerns, and an id. */
export type Change =
  | readonly [
      'create',
      store: number,
      owner: number,
      id: number | undefined, // the store assigns the next one
      name: string,
      tag: string,
    ]
  | readonly ['delete', store: number, reach: Reach, id: number];

export type ChangeKind = Change[0];
export type ChangeOf<Kind extends ChangeKind> = {
  [Each in ChangeKind]: Extract<Change, readonly [Each, ...unknown[]]>;
}[Kind];

/** What a change of a kind resolves to. Its conditions are checked in its transaction. */
export interface ChangeResults {
  /** The id of the plant. */
  create: number;
  /** Whether the plant was there, within reach. */
  delete: boolean;
}

export function creationOf(
  { store, user }: Identity,
  { id, name, tag = '' }: NewPlant,
): ChangeOf<'create'> {
  return ['create', store, user, id, name, tag];
}

/** The plant that a change has created under this id. */
export function createdPlant([, , , , name, tag]: ChangeOf<'create'>, id: number): Plant {
  return { id, name, tag };
}
