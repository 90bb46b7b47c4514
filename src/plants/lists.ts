/**
 * What both engines share about lists: how each kind is read, and pages of rows.
 */
import type { Reach } from '../access/access.ts';
import type { Plant } from './plant.ts';
import { plantJson } from './plant-json.ts';
import type { PlantPage, PlantQuery } from './plant-storage.ts';

/**
 * How a list is read: all but `scan` read one range of an index, or merge one range for each owner. No index
 * has the plants of an owner by tag, so such a list scans the owner's plants (decision 7).
 */
type ListKind = 'store' | 'storeTag' | 'owner' | 'owners' | 'scan';

export function listKind(reach: Reach, { tag }: PlantQuery): ListKind {
  if (reach === 'all') return tag === undefined ? 'store' : 'storeTag';
  if (tag !== undefined) return 'scan';
  return reach.length === 1 ? 'owner' : 'owners';
}

/** Merging fewer owners is always fast. */
export const minScannedOwners = 16;
/** Plants of the store among which a step searches those in reach: it takes either engine less than 1 ms. */
export const maxScannedPlants = 2_000;

/**
 * Whether so many of the plants of the store are in reach that it is faster to search them in order
 * than to merge the next plants of each owner (decision 32).
 */
export function isDense(inReach: number, ofStore: number): boolean {
  return inReach * 50 >= ofStore;
}

/** Longer pages take longer than other requests. */
const maxShortPagePlants = 100;

/** Whether a page takes one short read: few plants, in one range of an index. */
export function isShort(reach: Reach, query: PlantQuery): boolean {
  const kind = listKind(reach, query);
  return query.limit <= maxShortPagePlants && kind !== 'owners' && kind !== 'scan';
}

/** The columns that the lists of both engines read. */
export type PlantRow = readonly [id: number, name: string, tag: string];
/** Pages of rows ignore further columns. */
export type LongerPlantRow = readonly [...PlantRow, ...rest: readonly unknown[]];

function plantOf([id, name, tag]: LongerPlantRow): Plant {
  return { id, name, tag };
}

/** `rows` has `limit` + 1 rows if more plants follow. */
export function pageOf(
  rows: readonly LongerPlantRow[],
  { limit, fields }: Pick<PlantQuery, 'limit' | 'fields'>,
): PlantPage {
  const plants = rows.slice(0, limit).map(plantOf);
  const next = rows.length > limit ? plants.at(-1)?.id : undefined;
  return { json: plants.map((plant) => plantJson(plant, fields)).join(), next };
}
