/**
 * What both engines share about lists: how each kind is read, pages of rows, and their JSON. The writer thread of SQLite
 * loads this module, so it must not load the library of the schemas.
 */
import type { Reach } from '../access/access.ts';
import type { Plant, PlantField } from './plant.ts';
import type { PlantPage, PlantQuery } from './plant-storage.ts';

/**
 * How a list is read: all but `scan` read one range of an index, or merge one range for each owner. No index has
 * tags, so a list by tag scans the plants in reach (decision 7).
 */
type ListKind = 'store' | 'owner' | 'owners' | 'scan';

export function listKind(reach: Reach, { tag }: PlantQuery): ListKind {
  if (tag !== undefined) return 'scan';
  if (reach === 'all') return 'store';
  return reach.length === 1 ? 'owner' : 'owners';
}

/** Merging fewer owners is always fast. */
export const minScannedOwners = 16;

/**
 * Whether enough plants of the store are in reach that searching in order is faster than merging the next plants of
 * each owner (decision 22).
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
/** Pages ignore further columns. */
type LongerPlantRow = readonly [...PlantRow, ...rest: readonly unknown[]];

/** `rows` has more than `limit` rows if more plants follow. */
export function pageOf(rows: readonly LongerPlantRow[], { limit, fields }: PlantQuery): PlantPage {
  const plants = rows.slice(0, limit).map(([id, name, tag]) => ({ id, name, tag }));
  const next = rows.length > limit ? plants.at(-1)?.id : undefined;
  return { json: plants.map((plant) => plantJson(plant, fields)).join(), next };
}

/** The plants of a list among those that a step of bounded cost has read. */
export interface ScanStep {
  rows: readonly LongerPlantRow[];
  /** The next step begins after this id; undefined at the end. */
  scannedTo: number | undefined;
}

/**
 * Reads a list that no index covers, in steps of bounded cost. The event loop is free between two steps. Each step can
 * stop after `limit` + 1 plants: the last one shows that others follow.
 */
export async function scan(
  query: PlantQuery,
  readStep: (query: PlantQuery) => Promise<ScanStep>,
): Promise<PlantPage> {
  const found: LongerPlantRow[] = [];
  let after: number | undefined = query.after;
  while (after !== undefined && found.length <= query.limit) {
    query.assertWanted?.();
    const limit = query.limit - found.length;
    const { rows, scannedTo }: ScanStep = await readStep({ ...query, after, limit });
    found.push(...rows);
    after = scannedTo;
  }
  return pageOf(found, query);
}

/** The fields of a response if the request names none. */
export const defaultFields: readonly PlantField[] = ['name', 'tag'];

/** One plant as JSON with these fields in this order, exactly as in a list. */
export function plantJson(plant: Plant, fields: readonly PlantField[] = defaultFields): string {
  return `{${fields.map((field) => `"${field}":${JSON.stringify(plant[field])}`).join()}}`;
}
