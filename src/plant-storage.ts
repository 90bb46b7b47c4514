import type { Identity, ReadAccess, WriteAccess } from './access.ts';
import type { NewPlant, Plant, PlantField } from './plant.ts';

/** The plants of a storage (storage.ts). A plant out of reach is answered like one that does not exist. */
export interface PlantStorage {
  /**
   * Adds a plant that the caller owns. Without an id it gets the number after the largest that the
   * store has ever held.
   *
   * Rejects with `id-taken` where the store holds the id, whoever owns it, and with `ids-exhausted`
   * where there is no number left to assign. Nothing has changed then.
   */
  createPlant(caller: Identity, plant: NewPlant): Promise<Plant>;

  /** The plant, or undefined where the caller reaches none with this id. */
  findPlant(caller: ReadAccess, id: number): Promise<Plant | undefined>;

  /**
   * The first `limit` plants with an id above `after`, in ascending order of id; only those whose
   * tag is exactly `tag` where one is given. Costs the same at any depth and size of the store. Two
   * things cost more: each owner that is reached, and a tag, unless the whole store is reached. That
   * may walk over all that the caller reaches, in steps between which others have a turn.
   */
  listPlants(caller: ReadAccess, query: PlantQuery): Promise<PlantPage>;

  /** True where the plant was there for this caller and is now gone. */
  deletePlant(caller: WriteAccess, id: number): Promise<boolean>;
}

export interface PlantQuery {
  after: number;
  /** The largest id that counts; no bound where it is undefined. */
  upTo?: number | undefined;
  limit: number;
  tag?: string | undefined;
  /** Which fields of a plant, in the order that they are written in; at least one, none twice. */
  fields: readonly PlantField[];
  /** True once nobody waits for the page any more: a walk ends there. */
  isGone?: (() => boolean) | undefined;
}

/**
 * A page is text and not plants: every engine can write the JSON itself, and a list of any length
 * then costs one string a page instead of objects for each plant.
 */
export interface PlantPage {
  /** The plants as JSON.stringify would write them, with commas between and nothing around. */
  json: string;
  /**
   * Where `limit` ended the page and others of the query follow: the id of its last plant, after which
   * the next page begins. Undefined where the list ends.
   */
  next: number | undefined;
}
