/**
 * What both engines share about lists: filters, pages of rows, and their JSON. The writer thread of SQLite
 * loads this module, so it must not load the library of the schemas.
 */
import { accessTo, userKey, type ReadAccess, type Reach } from '../access/access.ts';
import type { UserStorage } from '../access/user-storage.ts';
import { scan, type ScanStep } from '../shared/scan.ts';
import { runInSlice } from '../shared/time-slices.ts';
import { fold } from './folding.ts';
import type { PlantField } from './plant.ts';
import type { OwnedPlant, PlantPage, PlantQuery } from './plant-storage.ts';

/** Whether plants in reach can be missing from the list. No index has tags or parts of names (decisions 7 and 40). */
export function isFiltered({ tag, q }: PlantQuery): boolean {
  return tag !== undefined || q !== undefined;
}

/** What a list reads: one range of an index, for all plants of the store or of one owner, or several to be merged. */
export function sourceOf(reach: Reach): 'store' | 'owner' | 'owners' {
  if (reach === 'all') return 'store';
  return reach.length === 1 ? 'owner' : 'owners';
}

/** Whether a list is one range of an index. */
export function isRange(reach: Reach, query: PlantQuery): boolean {
  return !isFiltered(query) && sourceOf(reach) !== 'owners';
}

/** Longer pages take longer than other requests. */
const maxShortPagePlants = 100;

/** Whether a page takes one short read. */
export function isShort(reach: Reach, query: PlantQuery): boolean {
  return query.limit <= maxShortPagePlants && isRange(reach, query);
}

/** A plant of the list has this tag, or contains this text once it is folded. */
export interface Filter {
  by: 'tag' | 'text';
  wanted: string;
}

/**
 * Reads the next plants in reach: up to `limit` of them, or fewer if that would take longer than other requests. It can
 * leave out plants that do not pass the filter.
 */
export type StepReader = (
  after: number,
  limit: number,
  filter?: Filter,
) => Promise<ScanStep<OwnedPlant, number>>;

/** Plants of the first step of a scan, which is often enough. Each further one is twice as long. */
const firstScannedPlants = 256;

/** Reads a page in steps, and decides which plants pass its filters, for all engines alike. */
export async function listPlants(
  caller: ReadAccess,
  query: PlantQuery,
  users: Pick<UserStorage, 'namesOf'>,
  readStep: StepReader,
): Promise<PlantPage> {
  const { limit, fields, tag } = query;
  const text = query.q === undefined ? undefined : fold(query.q);
  let scanned = firstScannedPlants;
  const found = await scan(query, async (after: number, left) => {
    const wanted = tag ?? text;
    if (wanted === undefined) return readStep(after, left + 1);
    const step = await readStep(after, scanned, { by: tag === undefined ? 'text' : 'tag', wanted });
    scanned *= 2;
    const tagged = tag === undefined ? step.rows : step.rows.filter((plant) => plant.tag === tag);
    return { ...step, rows: text === undefined ? tagged : await plantsWith(text, tagged, caller) };
  });
  const plants = found.slice(0, limit);
  const next = found.length > limit ? plants.at(-1)?.id : undefined;
  const names = fields.includes('owner')
    ? await users.namesOf(
        caller.store,
        plants.map(({ owner }) => owner),
      )
    : undefined;
  return { json: plants.map((plant) => plantJson(plant, caller, fields, names)).join(), next };
}

/** UTF-16 code units that are folded at once: it takes less than 1 ms, whatever they are. */
const maxFoldedUnits = 4_000;

/** The plants whose name or tag contains the folded text. */
async function plantsWith(
  text: string,
  plants: readonly OwnedPlant[],
  caller: ReadAccess,
): Promise<OwnedPlant[]> {
  const found: OwnedPlant[] = [];
  let at = 0;
  const checkSome = async () => {
    for (let units = 0; units < maxFoldedUnits; at++) {
      const plant = plants[at];
      if (plant === undefined) break;
      const texts = `${plant.name}\0${plant.tag}`; // no text contains the separator
      if (fold(texts).includes(text)) found.push(plant);
      units += texts.length;
    }
  };
  while (at < plants.length) await runInSlice(userKey(caller), checkSome);
  return found;
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
