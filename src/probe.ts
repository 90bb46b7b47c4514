/**
 * Lists of many owners. Merging the plants of each costs a search per owner. If the owners have many of the plants
 * near the cursor, it is faster to read the list of the store and to skip the plants of others. So each page begins
 * that way. Its rest is merged if about as many plants as there are owners have been read, and few are in reach.
 */
import { reaches, type Reach } from './access.ts';
import type { OwnedPlantRow } from './lists.ts';
import type { PlantQuery } from './plant-storage.ts';

/** Merging fewer owners is always fast. */
const minOwners = 16;
/** If a smaller part of the plants is in reach, more are read at a time. */
const minYield = 1 / 4;
const growth = 4;

/** Whether so few of the plants of the store are in reach that merging is faster. */
export function isSparse(inReach: number, ofStore: number): boolean {
  return inReach < ofStore * minYield;
}

export class Probe {
  /** Plants of the page. */
  readonly found: OwnedPlantRow[] = [];
  /** The id after which the rest of the page begins; undefined at the end of the list. */
  after: number | undefined;
  /** Number of plants of the store to read next; 0 once the page is complete or the rest must be merged. */
  limit: number;
  readonly #reach: Reach;
  readonly #wanted: number;
  #read = 0;

  /** A page needs one plant above its limit, which shows that more follow. */
  constructor(reach: Reach, { after, limit }: Pick<PlantQuery, 'after' | 'limit'>) {
    this.#reach = reach;
    this.#wanted = limit + 1;
    this.after = after;
    this.limit = reach.length < minOwners ? 0 : this.#wanted;
  }

  /** Number of plants that the page still needs. */
  get missing(): number {
    return this.after === undefined ? 0 : this.#wanted - this.found.length;
  }

  /** Takes the next plants of the store after `after`, as many as `limit` or up to the end. */
  add(rows: readonly OwnedPlantRow[]): void {
    const inReach = rows.filter(([, , , owner]) => reaches(this.#reach, owner));
    this.found.push(...inReach.slice(0, this.missing));
    this.after = rows.length < this.limit ? undefined : rows.at(-1)?.[0];
    this.#read += rows.length;
    const owners = this.#reach.length;
    const isFruitless = isSparse(inReach.length, rows.length);
    if (this.missing === 0 || (isFruitless && this.#read >= owners)) this.limit = 0;
    else if (isFruitless) this.limit = Math.min(growth * this.limit, owners);
  }
}
