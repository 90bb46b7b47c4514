/**
 * Changes to plants, in one form for every storage: decide.ts decides them, and each engine writes what it decides. Only
 * `copy` bypasses this.
 */
import {
  changeReachOf,
  type Caller,
  type ChangeAccess,
  type ChangeReach,
  type Identified,
} from '../access/access.ts';
import type { Condition } from './entity-tag.ts';
import { eachText, withTexts, type Texts } from './fields.ts';
import { createKeyOf, type CreateKey } from './idempotency.ts';
import type { NewPlant } from './plant.ts';
import type { ChangeOptions, CreatedPlant, PlantStorage, StoredPlant } from './plant-storage.ts';

export type Change = Creation | Update | OfPlant<'delete'> | OfPlant<'restore'>;
export type ChangeKind = keyof ChangeResults;

/** Who makes a change, for its checks and for the log. */
interface Authored {
  readonly store: number;
  /** Undefined for an operator. */
  readonly by: Identified | undefined;
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
  /** Without what the client has sent. */
  create: Pick<CreatedPlant, 'id' | 'position' | 'isReplay'>;
  /** The plant after the change; undefined if there was none within reach. */
  update: StoredPlant | undefined;
  /** The position of the deletion; undefined if there was no plant within reach. */
  delete: number | undefined;
  /** The plant; undefined if there is none to restore within reach. */
  restore: StoredPlant | undefined;
}

/** The writes of a storage of plants, by what carries out a change. */
export function plantWrites(
  write: <C extends Change>(change: C) => Promise<ChangeResults[C['kind']]>,
): Pick<PlantStorage, ChangeKind> {
  return {
    async create(caller, plant, options) {
      const creation = creationOf(caller, plant, options);
      const created = await write(creation);
      return withTexts({ ...created, owner: creation.owner }, (field) => creation[field]);
    },

    async update(caller, id, patch, options) {
      const texts = eachText((field) => (patch[field] === null ? '' : patch[field]));
      return write({ ...ofPlant('update', caller, id, options), ...texts });
    },

    delete: async (caller, id, options) => write(ofPlant('delete', caller, id, options)),
    restore: async (caller, id, options) => write(ofPlant('restore', caller, id, options)),
  };
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
  caller: ChangeAccess,
  id: number,
  { condition, request }: ChangeOptions = {},
): OfPlant<Kind> {
  const { store, identified: by } = caller;
  return { kind, store, by, request, id, reach: changeReachOf(caller), condition };
}
