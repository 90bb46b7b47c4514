/**
 * Changes to plants, in one form for every storage: decide.ts decides them, and each engine writes what it decides. Only
 * `copy` bypasses this.
 */
import { changeReachOf, type Caller, type ChangeReach, type Identified } from '../access/access.ts';
import type { Condition } from './condition.ts';
import { createKeyOf, type CreateKey } from './idempotency.ts';
import { eachText, withTexts, type Texts } from './fields.ts';
import type { NewPlant, PlantPatch } from './plant.ts';
import type { ChangeOptions, CreatedPlant, OwnedPlant } from './plant-storage.ts';

export type Change = Creation | Update | Deletion | Restoration;

/** Who makes a change, for its checks and for the log. */
interface Authored {
  readonly store: number;
  readonly by: Identified;
  readonly request: string | undefined;
}

export interface Creation extends Authored, Texts {
  readonly kind: 'create';
  readonly owner: number;
  /** If undefined, the store assigns the next one. */
  readonly id: number | undefined;
  readonly key: CreateKey | undefined;
}

interface OfPlant extends Authored {
  readonly id: number;
  /** What the caller could change when they were identified. */
  readonly reach: ChangeReach;
}

/** Texts that are undefined stay the same. */
export interface Update extends OfPlant, Texts<string | undefined> {
  readonly kind: 'update';
  readonly condition: Condition | undefined;
}

export interface Deletion extends OfPlant {
  readonly kind: 'delete';
  readonly condition: Condition | undefined;
}

interface Restoration extends OfPlant {
  readonly kind: 'restore';
}

export type ChangeKind = Change['kind'];

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

export type ResultOfChange<C extends Change> = ChangeResults[C['kind']];

export function creationOf(
  { store, user, identified }: Caller,
  plant: NewPlant,
  { request, key }: ChangeOptions = {},
): Creation {
  const creation = {
    kind: 'create' as const,
    store,
    owner: user,
    id: plant.id,
    by: identified,
    request,
    key: key === undefined ? undefined : createKeyOf(key, plant),
  };
  return withTexts(creation, (field) => plant[field] ?? '');
}

export function updateOf(
  caller: Caller,
  id: number,
  patch: PlantPatch,
  { condition, request }: ChangeOptions = {},
): Update {
  const texts = eachText((field) => (patch[field] === null ? '' : patch[field]));
  return { kind: 'update', ...plantFor(caller, id, request), condition, ...texts };
}

export function deletionOf(
  caller: Caller,
  id: number,
  { condition, request }: ChangeOptions = {},
): Deletion {
  return { kind: 'delete', ...plantFor(caller, id, request), condition };
}

export function restorationOf(
  caller: Caller,
  id: number,
  { request }: ChangeOptions = {},
): Restoration {
  return { kind: 'restore', ...plantFor(caller, id, request) };
}

function plantFor(caller: Caller, id: number, request: string | undefined): OfPlant {
  const { store, identified: by } = caller;
  return { store, reach: changeReachOf(caller), id, by, request };
}

/** The plant that the change, or an earlier one with its key, created. */
export function createdPlant(creation: Creation, result: ChangeResults['create']): CreatedPlant {
  const isReplay = typeof result === 'object';
  const { owner } = creation;
  const id = isReplay ? result.id : result;
  return withTexts({ id, owner, isReplay }, (field) => creation[field]);
}
