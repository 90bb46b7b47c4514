/**
 * Changes to plants, in one form for every storage. They are tuples, because they are copied to the writer thread
 * of SQLite: with objects, most of the cost would be copying their keys.
 *
 * Each engine decides all changes in their transaction: sqlite/tables/plants.ts, which `apply` in sqlite/writer/thread.ts
 * calls, and postgres/writer/decisions.ts, whose decisions postgres/writer/store-changes.ts writes. Only `copy` bypasses this.
 */
import { changeReachOf, type Caller, type ChangeReach, type Identified } from '../access/access.ts';
import type { Condition } from './condition.ts';
import { createKeyOf, type CreateKey } from './idempotency.ts';
import type { NewPlant, PlantPatch } from './plant.ts';
import type { ChangeOptions, CreatedPlant, OwnedPlant } from './plant-storage.ts';

/** The first elements of each are its kind, the store, the owner or the reach, the id, and who makes it. */
export type Change =
  | readonly [
      'create',
      store: number,
      owner: number,
      id: number | undefined, // if undefined, the store assigns the next one
      ...author: Author,
      name: string,
      tag: string,
      key: CreateKey | undefined,
    ]
  | readonly [
      'update',
      ...plant: PlantInReach,
      condition: Condition | undefined,
      name: string | undefined,
      tag: string | undefined,
    ]
  | readonly ['delete', ...plant: PlantInReach, condition: Condition | undefined]
  | readonly ['restore', ...plant: PlantInReach];

type PlantInReach = readonly [store: number, reach: ChangeReach, id: number, ...author: Author];

/** Who makes a change, for its checks and for the log. */
type Author = readonly [by: Identified, request: string | undefined];

export type ChangeKind = Change[0];
export type ChangeOf<Kind extends ChangeKind> = Extract<Change, readonly [Kind, ...unknown[]]>;

/** What a change of each kind resolves to. Its conditions are checked in its transaction. */
export interface ChangeResults {
  /** The id of the plant; in an object if an earlier request with the key has created it. */
  create: number | { id: number };
  /** The plant after the change; undefined if there was none within reach. */
  update: OwnedPlant | undefined;
  /** Whether the plant existed within reach. */
  delete: boolean;
  /** The plant; undefined if there is none to restore within reach. */
  restore: OwnedPlant | undefined;
}

export function creationOf(
  { store, user, identified }: Caller,
  plant: NewPlant,
  { request, key }: ChangeOptions = {},
): ChangeOf<'create'> {
  const { id, name, tag = '' } = plant;
  const hashes = key === undefined ? undefined : createKeyOf(key, plant);
  return ['create', store, user, id, identified, request, name, tag, hashes];
}

export function updateOf(
  caller: Caller,
  id: number,
  { name, tag }: PlantPatch,
  { condition, request }: ChangeOptions = {},
): ChangeOf<'update'> {
  return [
    'update',
    caller.store,
    changeReachOf(caller),
    id,
    caller.identified,
    request,
    condition,
    name,
    tag === null ? '' : tag,
  ];
}

export function deletionOf(
  caller: Caller,
  id: number,
  { condition, request }: ChangeOptions = {},
): ChangeOf<'delete'> {
  return ['delete', caller.store, changeReachOf(caller), id, caller.identified, request, condition];
}

export function restorationOf(
  caller: Caller,
  id: number,
  { request }: ChangeOptions = {},
): ChangeOf<'restore'> {
  return ['restore', caller.store, changeReachOf(caller), id, caller.identified, request];
}

/** The plant that the change, or an earlier one with its key, created. */
export function createdPlant(
  [, , owner, , , , name, tag]: ChangeOf<'create'>,
  result: ChangeResults['create'],
): CreatedPlant {
  const isReplay = typeof result === 'object';
  return { id: isReplay ? result.id : result, name, tag, owner, isReplay };
}

/** The plant after the change. */
export function updatedPlant<P extends Omit<OwnedPlant, 'id'>>(
  plant: P,
  [, , , , , , , name = plant.name, tag = plant.tag]: ChangeOf<'update'>,
): P {
  return { ...plant, name, tag };
}
