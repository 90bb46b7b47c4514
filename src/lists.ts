/**
 * What lists have in common on every engine: the ways to read one, the pages that are kept, and pages that
 * are made of rows.
 */
import { soleOwner, type Reach, type ReadAccess } from './access.ts';
import { plantJson, type Plant } from './plant.ts';
import type { PlantPage, PlantQuery } from './plant-storage.ts';

/**
 * Each but the last is a range of an index, or of several that are merged. No index has the plants of some
 * owners by tag: they are walked over (decision 7).
 */
export type ListKind = 'store' | 'storeTag' | 'owner' | 'owners' | 'walk';

export function listKind(reach: Reach, { tag }: PlantQuery): ListKind {
  if (reach === 'all') return tag === undefined ? 'store' : 'storeTag';
  if (tag !== undefined) return 'walk';
  return reach.length === 1 ? 'owner' : 'owners';
}

/** Plants of a first page that is kept. */
const firstPagePlantsMax = 100;

/**
 * What a first page is cached under (`Freshness.page`): the same for all who see the same. Undefined for other
 * pages. First pages are asked for again and again; a cursor is walked over once.
 */
export function firstPageKey({ store, read }: ReadAccess, query: PlantQuery): string | undefined {
  const { after, upTo, limit, tag, fields } = query;
  const isFirst = after === 0 && upTo === undefined && tag === undefined;
  if (!isFirst || limit > firstPagePlantsMax) return undefined;
  return `${store} ${soleOwner(read) ?? String(read)} ${limit} ${fields.join()}`;
}

/** Columns of the statements of both engines. */
export type PlantRow = readonly [id: number, name: string, tag: string];

function plantOf([id, name, tag]: PlantRow): Plant {
  return { id, name, tag };
}

/** `rows` has one more than `limit` if others follow. */
export function pageOf(
  rows: readonly PlantRow[],
  { limit, fields }: Pick<PlantQuery, 'limit' | 'fields'>,
): PlantPage {
  const plants = rows.slice(0, limit).map(plantOf);
  const next = rows.length > limit ? plants.at(-1)?.id : undefined;
  return { json: plants.map((plant) => plantJson(plant, fields)).join(), next };
}
