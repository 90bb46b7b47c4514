/**
 * What both engines share about lists: how each kind is read, which pages are cached, and pages of rows.
 */
import { hash } from 'node:crypto';
import type { Reach, ReadAccess } from './access.ts';
import { plantJson, type Plant } from './plant.ts';
import type { PlantPage, PlantQuery } from './plant-storage.ts';

/**
 * How a list is read: all but `scan` read one range of an index, or merge one range for each owner. No index
 * has the plants of an owner by tag, so such a list scans the owner's plants (decision 7).
 */
export type ListKind = 'store' | 'storeTag' | 'owner' | 'owners' | 'scan';

export function listKind(reach: Reach, { tag }: PlantQuery): ListKind {
  if (reach === 'all') return tag === undefined ? 'store' : 'storeTag';
  if (tag !== undefined) return 'scan';
  return reach.length === 1 ? 'owner' : 'owners';
}

/** Larger first pages are not cached. */
export const maxFirstPagePlants = 100;

/**
 * The cache key of a first page (freshness.ts of each engine), shared by all callers who see the same plants. Undefined for
 * other pages: first pages are requested again and again, later ones once.
 */
export function firstPageKey({ store, read }: ReadAccess, query: PlantQuery): string | undefined {
  const { after, upTo, limit, tag, fields } = query;
  const isFirst = after === 0 && upTo === undefined && tag === undefined;
  if (!isFirst || limit > maxFirstPagePlants) return undefined;
  return `${store} ${reachKey(read)} ${limit} ${fields.join()}`;
}

/** By the array of a cached grant: digesting 1,000 owners takes longer than looking up their page. */
const reachKeys = new WeakMap<readonly number[], string>();

function reachKey(read: Reach): string {
  if (read === 'all' || read.length === 1) return String(read);
  let key = reachKeys.get(read);
  if (key === undefined) {
    key = hash('sha256', String(read), 'base64');
    reachKeys.set(read, key);
  }
  return key;
}

/** The columns that the lists of both engines read. */
export type PlantRow = readonly [id: number, name: string, tag: string];
/** Pages of rows ignore further columns. */
export type LongerPlantRow = readonly [...PlantRow, ...rest: readonly unknown[]];
export type OwnedPlantRow = readonly [...PlantRow, owner: number];

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
