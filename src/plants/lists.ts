/**
 * What both engines share about lists: how each kind is read, pages of rows, and their JSON. The writer thread of SQLite
 * loads this module, so it must not load the library of the schemas.
 */
import { accessTo, userKey, type ReadAccess, type Reach } from '../access/access.ts';
import { scan, type ScanStep } from '../shared/scan.ts';
import { runInSlice } from '../shared/time-slices.ts';
import { fold } from './folding.ts';
import type { PlantField } from './plant.ts';
import type { OwnedPlant, PlantPage, PlantQuery } from './plant-storage.ts';

/**
 * How a list is read: all but `scan` read one range of an index, or merge one range for each owner. No index has
 * tags or parts of names, so a list by tag and a search scan the plants in reach (decisions 7 and 40).
 */
type ListKind = 'store' | 'owner' | 'owners' | 'scan';

export function listKind(reach: Reach, { tag, q }: PlantQuery): ListKind {
  if (tag !== undefined || q !== undefined) return 'scan';
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
export type PlantRow = readonly [id: number, name: string, tag: string, owner: number];
/** Pages ignore further columns. */
type LongerPlantRow = readonly [...PlantRow, ...rest: readonly unknown[]];

/** `rows` has more than `limit` rows if more plants follow. */
export async function pageOf(
  rows: readonly LongerPlantRow[],
  caller: ReadAccess,
  { limit, fields }: PlantQuery,
  namesOf: NamesOf,
): Promise<PlantPage> {
  const plants = rows.slice(0, limit).map(([id, name, tag, owner]) => ({ id, name, tag, owner }));
  const next = rows.length > limit ? plants.at(-1)?.id : undefined;
  const names = fields.includes('owner')
    ? await namesOf(plants.map(({ owner }) => owner))
    : undefined;
  return { json: plants.map((plant) => plantJson(plant, caller, fields, names)).join(), next };
}

/** The plants of a list among those that a step has read. In a search, some may not contain the text. */
export type PlantScanStep = ScanStep<LongerPlantRow, number>;

/** Reads a list that no index covers. In a search, `q` of a step is folded. */
export async function scanPlants(
  caller: ReadAccess,
  query: PlantQuery,
  namesOf: NamesOf,
  readStep: (query: PlantQuery) => Promise<PlantScanStep>,
): Promise<PlantPage> {
  const q = query.q === undefined ? undefined : fold(query.q);
  const found = await scan(query, async (after: number, limit) => {
    const step = await readStep({ ...query, q, after, limit });
    return q === undefined ? step : { ...step, rows: await rowsWith(q, step.rows, caller) };
  });
  return pageOf(found, caller, query, namesOf);
}

/** UTF-16 code units that are folded at once: it takes less than 1 ms, whatever they are. */
const maxFoldedUnits = 4_000;
/** Between texts that are folded together, because one long text takes a third of the time. No text has it. */
const separator = '\0';

/** The rows whose name or tag contains the folded text. */
async function rowsWith(
  text: string,
  rows: readonly LongerPlantRow[],
  caller: ReadAccess,
): Promise<LongerPlantRow[]> {
  const found: LongerPlantRow[] = [];
  let at = 0;
  const checkSome = async () => {
    const first = at;
    const texts: string[] = [];
    for (let units = 0; units < maxFoldedUnits; at++) {
      const row = rows[at];
      if (row === undefined) break;
      const [, name, tag] = row;
      units += name.length + tag.length;
      texts.push(name, tag);
    }
    const folded = fold(texts.join(separator));
    if (!folded.includes(text)) return;
    for (const [index, one] of folded.split(separator).entries()) {
      const row = rows[first + Math.floor(index / 2)];
      if (row !== undefined && found.at(-1) !== row && one.includes(text)) found.push(row);
    }
  };
  while (at < rows.length) await runInSlice(userKey(caller), checkSome);
  return found;
}

/** The fields of a response if the request names none. */
export const defaultFields: readonly PlantField[] = ['name', 'tag'];

/** The names of users, by number. */
export type NamesOf = (users: readonly number[]) => Promise<ReadonlyMap<number, string>>;

/** One plant as JSON with these fields in this order, exactly as in a list. `names` are needed only for `owner`. */
export function plantJson(
  plant: OwnedPlant,
  caller: ReadAccess,
  fields: readonly PlantField[],
  names?: ReadonlyMap<number, string>,
): string {
  if (fields === defaultFields) {
    return `{"name":${JSON.stringify(plant.name)},"tag":${JSON.stringify(plant.tag)}}`;
  }
  const valueOf = (field: PlantField) => {
    if (field === 'owner') return names?.get(plant.owner);
    return field === 'access' ? accessTo(caller, plant.owner) : plant[field];
  };
  return `{${fields.map((field) => `"${field}":${JSON.stringify(valueOf(field))}`).join()}}`;
}
