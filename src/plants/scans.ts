/**
 * Reads all plants in reach, because no index has tags, parts of names or folded names (decisions 7 and 40): searches,
 * sorted pages and counts, for all engines alike.
 */
import { userKey, type ReadAccess } from '../access/access.ts';
import { invalidRequest } from '../problem.ts';
import { scan, type ScanStep } from '../shared/scan.ts';
import { shortHash } from '../shared/short-hash.ts';
import { runInSlice } from '../shared/time-slices.ts';
import { fold } from './folding.ts';
import type { OwnedPlant, PlantCursor, PlantFilters, PlantQuery } from './plant-storage.ts';

/**
 * What the plants of a step have, unless they have other characters than ASCII: a tag, a folded text, or a folded name
 * in a range. `none` leaves out all.
 */
export interface Filter {
  by: 'tag' | 'text' | 'name' | 'none';
  values: readonly string[];
}

/** Some plants in reach, and with the filter `none` how many others the step has left out. */
export type PlantStep = ScanStep<OwnedPlant, number> & { leftOut?: number };

/**
 * Reads the next plants in reach: up to `limit` of them, or fewer if that would take longer than other requests. It can
 * leave out plants that do not pass the filter.
 */
export type StepReader = (after: number, limit: number, filter?: Filter) => Promise<PlantStep>;

/** Whether plants in reach can be missing from the list. */
export function isFiltered({ tag, q }: PlantFilters): boolean {
  return tag !== undefined || q !== undefined;
}

/** Plants of the first step of a scan, which is often enough. Each further one is twice as long. */
const firstScannedPlants = 256;

/** Returns a reader of steps with the plants that pass the filters. Without any, the engine can apply that of `others`. */
export function searchSteps(
  caller: ReadAccess,
  { tag, q }: PlantFilters,
  readStep: StepReader,
  others?: () => Filter,
): (after: number) => Promise<PlantStep> {
  const text = q === undefined ? undefined : fold(q);
  const by = tag === undefined ? 'text' : 'tag';
  const wanted = tag ?? text;
  let scanned = firstScannedPlants;
  return async (after) => {
    const filter = wanted === undefined ? others?.() : ({ by, values: [wanted] } as const);
    const step = await readStep(after, scanned, filter);
    scanned *= 2;
    const tagged = tag === undefined ? step.rows : step.rows.filter((plant) => plant.tag === tag);
    if (text === undefined) return { ...step, rows: tagged };
    const rows: OwnedPlant[] = [];
    await eachInSlices(caller, tagged, (plant) => {
      // No text contains the separator.
      if (fold(`${plant.name}\0${plant.tag}`).includes(text)) rows.push(plant);
    });
    return { ...step, rows };
  };
}

/** UTF-16 code units that are folded or written at once: it takes less than 1 ms, whatever they are. */
const maxUnitsAtOnce = 4_000;

/** Does something with the texts of each plant, in slices of the event loop. */
export async function eachInSlices(
  caller: ReadAccess,
  plants: readonly OwnedPlant[],
  use: (plant: OwnedPlant) => void,
): Promise<void> {
  let at = 0;
  const useSome = async () => {
    for (let units = 0; units < maxUnitsAtOnce; at++) {
      const plant = plants[at];
      if (plant === undefined) break;
      use(plant);
      units += plant.name.length + plant.tag.length + 1;
    }
  };
  while (at < plants.length) await runInSlice(userKey(caller), useSome);
}

export const sorts = ['name', '-name'] as const;
export type Sort = (typeof sorts)[number];

/** Where a plant is in a sorted list. JavaScript compares the folded names, by UTF-16 code units. */
interface Place {
  folded: string;
  id: number;
}

/** Plants beyond a page that are collected before they are sorted with it, which takes less than 1 ms. */
const maxUnsorted = 250;

/** Sorts behind all names in ASCII. */
const behindAscii = '\x7F';

/** The first plants behind the cursor, one more than the page if others follow. The scan keeps only those. */
export async function firstSorted(
  caller: ReadAccess,
  { sort, after, limit, assertWanted, ...filters }: PlantQuery,
  readStep: StepReader,
): Promise<OwnedPlant[]> {
  const begin = placeOf(sort, after);
  const sign = sort === 'name' ? 1 : -1;
  const compare = (a: Place, b: Place) =>
    a.folded === b.folded ? a.id - b.id : a.folded < b.folded ? -sign : sign;
  let first: (Place & { plant: OwnedPlant })[] = [];
  /** The first plant behind the page, of those that the scan has seen. */
  let end: Place | undefined;
  const sortFirst = () => {
    first = first.toSorted(compare).slice(0, limit + 1);
    end = first[limit];
  };
  const collect = (plant: OwnedPlant) => {
    const place = { folded: fold(plant.name), id: plant.id, plant };
    if (begin !== undefined && compare(place, begin) <= 0) return;
    if (end !== undefined && compare(place, end) >= 0) return;
    if (first.push(place) > limit + maxUnsorted) sortFirst();
  };
  const nextStep = searchSteps(caller, filters, readStep, () => {
    const names = [begin?.folded, end?.folded];
    const [from = '', to = behindAscii] = sort === 'name' ? names : names.toReversed();
    return { by: 'name', values: [from, to] };
  });
  await scan({ after: 0, limit: Infinity, assertWanted }, async (from: number) => {
    const { rows, scannedTo } = await nextStep(from);
    await eachInSlices(caller, rows, collect);
    return { rows: [], scannedTo };
  });
  sortFirst();
  return first.map(({ plant }) => plant);
}

export async function countPlants(
  caller: ReadAccess,
  { assertWanted, ...filters }: PlantFilters,
  readStep: StepReader,
): Promise<number> {
  let count = 0;
  const nextStep = searchSteps(caller, filters, readStep, () => ({ by: 'none', values: [] }));
  await scan({ after: 0, limit: Infinity, assertWanted }, async (from: number) => {
    const { rows, leftOut = 0, scannedTo } = await nextStep(from);
    count += rows.length + (isFiltered(filters) ? 0 : leftOut);
    return { rows: [], scannedTo };
  });
  return count;
}

/** The form of the cursor of a sorted list. No id has it. */
export const sortCursor = /^[\w-]+\.[\w-]{22}$/;

/**
 * The cursor of the plants behind this one: its id, or with `sort` also its name, which is shorter than the folded one, and
 * a hash that shows damage and another order.
 */
export function cursorOf(
  sort: Sort | undefined,
  { id, name }: Pick<OwnedPlant, 'id' | 'name'>,
): PlantCursor {
  if (sort === undefined) return id;
  const text = `${id} ${name}`;
  return `${Buffer.from(text).toString('base64url')}.${shortHash(`${sort} ${text}`)}`;
}

/** Undefined at the begin of the list. */
function placeOf(sort: Sort | undefined, after: PlantCursor): Place | undefined {
  if (after === 0) return undefined;
  const text = Buffer.from(String(after).split('.')[0] ?? '', 'base64url').toString();
  const [, id, name = ''] = /^(\d+) (\P{Cc}+)$/u.exec(text) ?? [];
  const plant = { id: Number(id), name };
  if (sort !== undefined && cursorOf(sort, plant) === after)
    return { folded: fold(name), id: plant.id };
  const detail = `"after" is not a cursor of this order. Use the address in "Link" unchanged, or leave "after" out.`;
  throw invalidRequest([{ parameter: 'after', detail }]);
}
