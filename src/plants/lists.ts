/**
 * What both engines share about lists: pages of rows, and their JSON. The writer thread of SQLite
 * loads this module, so it must not load the library of the schemas.
 */
import { accessTo, type ReadAccess, type Reach } from '../access/access.ts';
import type { UserStorage } from '../access/user-storage.ts';
import { scan } from '../shared/scan.ts';
import type { PlantField } from './plant.ts';
import type { OwnedPlant, PlantPage, PlantQuery } from './plant-storage.ts';
import {
  cursorOf,
  eachInSlices,
  firstSorted,
  isFiltered,
  searchSteps,
  type StepReader,
} from './scans.ts';

/** What a list reads: one range of an index, for all plants of the store or of one owner, or several to be merged. */
export function sourceOf(reach: Reach): 'store' | 'owner' | 'owners' {
  if (reach === 'all') return 'store';
  return reach.length === 1 ? 'owner' : 'owners';
}

/** Whether a list is in the order of ids, and begins after one. */
function isById(query: PlantQuery): query is PlantQuery & { after: number } {
  return query.sort === undefined && typeof query.after === 'number';
}

/** Whether a page can take more than the next plants in reach. */
export function isScan(query: PlantQuery): boolean {
  return isFiltered(query) || !isById(query);
}

/** Whether a list is one range of an index. */
export function isRange(reach: Reach, query: PlantQuery): boolean {
  return !isScan(query) && sourceOf(reach) !== 'owners';
}

/** Longer pages take longer than other requests. */
const maxShortPagePlants = 100;

/** Whether a page takes one short read. */
export function isShort(reach: Reach, query: PlantQuery): boolean {
  return query.limit <= maxShortPagePlants && isRange(reach, query);
}

/** Reads a page in steps, and decides which plants are in it, for all engines alike. */
export async function listPlants(
  caller: ReadAccess,
  query: PlantQuery,
  users: Pick<UserStorage, 'namesOf'>,
  readStep: StepReader,
): Promise<PlantPage> {
  const { limit, fields } = query;
  const found = isById(query)
    ? await scan(query, nextById(caller, query, readStep))
    : await firstSorted(caller, query, readStep);
  const plants = found.slice(0, limit);
  const last = found.length > limit ? plants.at(-1) : undefined;
  const names = fields.includes('owner')
    ? await users.namesOf(
        caller.store,
        plants.map(({ owner }) => owner),
      )
    : undefined;
  const json: string[] = [];
  const write = (plant: OwnedPlant) => json.push(plantJson(plant, caller, fields, names));
  if (isById(query)) plants.forEach(write);
  else await eachInSlices(caller, plants, write); // a page can be longer, because it is one read
  return { json: json.join(), next: last && cursorOf(query.sort, last) };
}

function nextById(caller: ReadAccess, query: PlantQuery, readStep: StepReader) {
  if (isFiltered(query)) return searchSteps(caller, query, readStep);
  return (after: number, left: number) => readStep(after, left + 1);
}

/** The fields of a response if the request names none. */
export const defaultFields: readonly PlantField[] = ['name', 'tag'];

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
