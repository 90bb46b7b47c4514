import type { Caller, ChangeAccess, ReadAccess } from '../access/access.ts';
import type { Condition } from './entity-tag.ts';
import type { NewPlant, Plant, PlantField, PlantPatch } from './plant.ts';
import type { Sort } from './scans.ts';

/** A plant with the number of the user who owns it. */
export interface OwnedPlant extends Plant {
  owner: number;
}

/**
 * A plant with the position in the log of its last change. What a change returns can have a later one: a copy of what its
 * caller can read has the result if it is complete up to there.
 */
export interface StoredPlant extends OwnedPlant {
  position: number;
}

export interface CreatedPlant extends StoredPlant {
  /** Whether an earlier request with the same key has created it. */
  isReplay: boolean;
}

/** What a change depends on besides its caller. */
export interface ChangeOptions {
  /** Of the plant before the change. */
  condition?: Condition | undefined;
  /** The id of the request, for the log. */
  request?: string | undefined;
  /** Makes a create repeatable (idempotency.ts). */
  key?: string | undefined;
}

/** The plants of a storage (storage.ts). A plant out of reach is treated like one that does not exist. */
export interface PlantStorage {
  /**
   * Creates a plant that the caller owns. Without an id, it gets the number after the largest id that the store
   * has ever held. If no number is left, it gets a random free one.
   *
   * Rejects with `id-taken` if the store has a plant with the id, whoever owns it. Rejects with `quota-exceeded` if
   * there is no other reason, but no room (quota.ts). In both cases nothing changes.
   *
   * With a key, a repetition within 24 hours resolves to the first result, and changes nothing. Rejects with
   * `idempotency-key-reused` if the caller has sent another plant with it.
   */
  create(caller: Caller, plant: NewPlant, options?: ChangeOptions): Promise<CreatedPlant>;

  /** Resolves to undefined if there is no plant with this id within reach. */
  find(caller: ReadAccess, id: number): Promise<OwnedPlant | undefined>;

  /**
   * The first `limit` plants with an id above `after`, in ascending order of id. If `tag` is given, only
   * plants with exactly that tag. If `q` is given, only plants whose name or tag contains it, all folded (folding.ts).
   * If `sort` is given, they are in the order of the folded name, where `-name` reverses the names, then of the id. Rejects
   * with `invalid-request` if `after` is not of this order.
   *
   * The cost depends neither on the cursor nor on the size of the store, but on the number of owners in reach. With
   * `tag` or `q`, it can be a scan of all plants in reach, and with `sort` it is one. Other requests run between the steps
   * of a scan.
   */
  list(caller: ReadAccess, query: PlantQuery): Promise<PlantPage>;

  /** How many plants in reach pass the filters: a scan. */
  count(caller: ReadAccess, filters: PlantFilters): Promise<number>;

  /**
   * Changes the members of the patch, and nothing else. Resolves to the plant, or to undefined if there is none with this
   * id within reach. Rejects with `plant-read-only` if the caller can only see it, and with `precondition-failed` if the
   * condition does not hold.
   */
  update(
    caller: ChangeAccess,
    id: number,
    patch: PlantPatch,
    options?: ChangeOptions,
  ): Promise<StoredPlant | undefined>;

  /**
   * Resolves to the position of the deletion, or to undefined if there was no plant with this id within reach. Rejects with
   * `plant-read-only` and `precondition-failed` as `update` does.
   */
  delete(caller: ChangeAccess, id: number, options?: ChangeOptions): Promise<number | undefined>;

  /**
   * Brings a deleted plant back as it was, with its owner and id. Resolves to undefined if the log (change-log.ts) has no
   * such plant within reach. Rejects with `plant-read-only` if the caller can only see the plant or its history, with
   * `id-taken` if the store has a plant with the id, and with `quota-exceeded`.
   */
  restore(
    caller: ChangeAccess,
    id: number,
    options?: ChangeOptions,
  ): Promise<StoredPlant | undefined>;
}

/** `isFiltered` (scans.ts) must consider every filter: otherwise, pages are not filtered. */
export interface PlantFilters {
  tag?: string | undefined;
  q?: string | undefined;
  /** As in `ScanQuery`. */
  assertWanted?: (() => void) | undefined;
}

/** The id of the last plant of a page, or with `sort` a text. A list begins at 0. */
export type PlantCursor = number | string;

export interface PlantQuery extends PlantFilters {
  after: PlantCursor;
  limit: number;
  sort?: Sort | undefined;
  /** The fields to return, in this order: at least one, without duplicates. */
  fields: readonly PlantField[];
}

/**
 * A page is JSON, not objects: an engine can produce the text itself, and a list then takes one string per page
 * instead of an object per plant.
 */
export interface PlantPage {
  /** The plants as JSON.stringify writes them, separated by commas, without brackets. */
  json: string;
  /** The cursor if more plants follow. Undefined at the end of the list. */
  next: PlantCursor | undefined;
}
