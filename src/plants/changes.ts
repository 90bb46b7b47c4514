/**
 * Changes to plants, in one form for every storage: decide.ts decides them, and each engine writes what it decides. Only
 * `copy` bypasses this.
 */
import { changeReachOf, type Caller, type ChangeReach, type Identified } from '../access/access.ts';
import type { Condition } from './entity-tag.ts';
import { eachText, withTexts, type Texts } from './fields.ts';
import { createKeyOf, type CreateKey } from './idempotency.ts';
import type { NewPlant } from './plant.ts';
import type { ChangedPlant, ChangeOptions, OwnedPlant, PlantStorage } from './plant-storage.ts';

export type Change = Creation | Update | OfPlant<'delete'> | OfPlant<'restore'>;
export type ChangeKind = keyof ChangeResults;

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

export interface OfPlant<Kind extends ChangeKind> extends Authored {
  readonly kind: Kind;
  readonly id: number;
  /** What the caller could change when they were identified. */
  readonly reach: ChangeReach;
  readonly condition: Condition | undefined;
}

/** Texts that are undefined stay the same. */
export interface Update extends OfPlant<'update'>, Texts<string | undefined> {}

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

/** With the position of the decision (decide.ts). */
export type ResultOfChange<C extends Change> = readonly [
  result: ChangeResults[C['kind']],
  position: number,
];

/** The writes of a storage of plants, by what carries out a change. */
export function plantWrites(
  write: <C extends Change>(change: C) => Promise<ResultOfChange<C>>,
): Pick<PlantStorage, ChangeKind> {
  return {
    async create(caller, plant, options) {
      const creation = creationOf(caller, plant, options);
      const [result, position] = await write(creation);
      const isReplay = typeof result === 'object';
      const id = isReplay ? result.id : result;
      const { owner } = creation;
      return withTexts({ id, owner, position, isReplay }, (field) => creation[field]);
    },

    async update(caller, id, patch, options) {
      const texts = eachText((field) => (patch[field] === null ? '' : patch[field]));
      return changed(await write({ ...ofPlant('update', caller, id, options), ...texts }));
    },

    async delete(caller, id, options) {
      const [isDeleted, position] = await write(ofPlant('delete', caller, id, options));
      return isDeleted ? position : undefined;
    },

    restore: async (caller, id, options) =>
      changed(await write(ofPlant('restore', caller, id, options))),
  };
}

function changed([plant, position]: ResultOfChange<Update>): ChangedPlant | undefined {
  return plant && { ...plant, position };
}

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

function ofPlant<Kind extends ChangeKind>(
  kind: Kind,
  caller: Caller,
  id: number,
  { condition, request }: ChangeOptions = {},
): OfPlant<Kind> {
  const { store, identified: by } = caller;
  return { kind, store, by, request, id, reach: changeReachOf(caller), condition };
}
