/**
 * Changes to plants, in one form for every storage: decide.ts decides them, and each engine writes what it decides. Only
 * `copy` bypasses this.
 */
import { changeReachOf, type Caller, type ChangeReach, type Identified } from '../access/access.ts';
import type { Condition } from './condition.ts';
import { createKeyOf, type CreateKey } from './idempotency.ts';
import type { NewPlant } from './plant.ts';
import type { ChangeOptions, OwnedPlant, PlantStorage } from './plant-storage.ts';

export type Change = Creation | Update | Deletion | Restoration;

/** Who makes a change, for its checks and for the log. */
interface Authored {
  readonly store: number;
  readonly by: Identified;
  readonly request: string | undefined;
}

export interface Creation extends Authored {
  readonly kind: 'create';
  readonly owner: number;
  /** If undefined, the store assigns the next one. */
  readonly id: number | undefined;
  readonly name: string;
  readonly tag: string;
  readonly key: CreateKey | undefined;
}

interface OfPlant extends Authored {
  readonly id: number;
  /** What the caller could change when they were identified. */
  readonly reach: ChangeReach;
}

export interface Update extends OfPlant {
  readonly kind: 'update';
  readonly condition: Condition | undefined;
  readonly name: string | undefined;
  readonly tag: string | undefined;
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
  const { id, name, tag = '' } = plant;
  const hashes = key === undefined ? undefined : createKeyOf(key, plant);
  return {
    kind: 'create',
    store,
    owner: user,
    id,
    by: identified,
    request,
    name,
    tag,
    key: hashes,
  };
}

function plantFor(caller: Caller, id: number, request: string | undefined): OfPlant {
  const { store, identified: by } = caller;
  return { store, reach: changeReachOf(caller), id, by, request };
}

/** The writes of a storage of plants, by what carries out a change. */
export function plantWrites(
  write: <C extends Change>(change: C) => Promise<ResultOfChange<C>>,
): Pick<PlantStorage, 'create' | 'update' | 'delete' | 'restore'> {
  return {
    async create(...args) {
      const creation = creationOf(...args);
      const { owner, name, tag } = creation;
      const result = await write(creation);
      const isReplay = typeof result === 'object';
      return { id: isReplay ? result.id : result, name, tag, owner, isReplay };
    },
    async update(caller, id, { name, tag }, { condition, request } = {}) {
      const patch = { name, tag: tag === null ? '' : tag };
      return write({ kind: 'update', ...plantFor(caller, id, request), condition, ...patch });
    },
    delete: async (caller, id, { condition, request } = {}) =>
      write({ kind: 'delete', ...plantFor(caller, id, request), condition }),
    restore: async (caller, id, { request } = {}) =>
      write({ kind: 'restore', ...plantFor(caller, id, request) }),
  };
}
