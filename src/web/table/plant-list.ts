/**
 * A list of plants, read page by page as far as the user scrolls.
 */
import type { Plant } from '../../client/client.ts';
import { allFields } from '../../client/types.ts';

/** What a row shows, or needs. */
export const rowFields = allFields;
/** Whether the user can change the plant. */
export const isWritable = ({ access }: Plant) => access === 'write';

export const pageSize = 250;
/** Browsers limit the height of an element to 18 million pixels, and rows can be 100 pixels high. */
const maxRows = 100_000;

/** Reads up to `pageSize` plants with ids above `after`. An empty result is the end of the list. */
type ReadPage = (after: number | undefined) => Promise<Plant[]>;

export class PlantList {
  readonly #read: ReadPage;
  readonly #onChange: () => void;
  #plants: Plant[] = [];
  /** The row that the keyboard is in: the last one that was chosen, or added. */
  active = 0;
  /** Plants that changed since the last read began, undefined if removed: its answer can be older than that. */
  readonly #changed = new Map<number, Plant | undefined>();
  /** The names of the owners of all plants that were here. */
  readonly owners = new Set<string>();
  /** Whether `count` is all there are. */
  isComplete = false;
  #wanted = 0;
  #reading: Promise<void> | undefined;
  /** The error that stopped reading; undefined if there is none. `see` resumes reading. */
  failure: unknown;

  constructor(read: ReadPage, onChange: () => void) {
    this.#read = read;
    this.#onChange = onChange;
  }

  /** The rows that are known so far, in the order of their ids. */
  get plants(): readonly Plant[] {
    return this.#plants;
  }

  get count(): number {
    return this.#plants.length;
  }

  /** Whether no more rows are read, though there may be some. */
  get isFull(): boolean {
    return this.count >= maxRows && !this.isComplete;
  }

  /** The rows between two plants, both included. */
  between(one: number, other: number): Plant[] {
    const [first, last] = [Math.min(one, other), Math.max(one, other)];
    return this.#plants.filter(({ id }) => first <= id && id <= last);
  }

  /** Sets which row is the last one drawn: reads up to it, and some more. */
  see(last: number): void {
    this.#wanted = last + pageSize;
    this.#reading ??= this.#readWanted().finally(() => (this.#reading = undefined));
  }

  /** Reads no more until `see` is called again. */
  stop(): void {
    this.#wanted = 0;
  }

  /** Resolves when no request is in flight. */
  async settled(): Promise<void> {
    await this.#reading;
  }

  /** The row of a plant, or -1. */
  rowOf({ id }: Plant): number {
    return this.#plants.findIndex((plant) => plant.id === id);
  }

  /** Shows a plant that was added, if its place in the list is known, and moves the keyboard to it. */
  add(plant: Plant): void {
    const { id } = plant;
    this.#changed.set(id, plant);
    this.owners.add(plant.owner);
    const row = this.#plants.findLastIndex((before) => before.id < id) + 1;
    if (row === this.count && !this.isComplete) return;
    const isThere = this.#plants[row]?.id === id; // it was read meanwhile, or the page did not see it go
    this.#plants.splice(row, isThere ? 1 : 0, plant);
    this.active = row;
    this.#onChange();
  }

  /** Shows a plant as it is now, if it has a row. */
  replace(plant: Plant): void {
    this.#changed.set(plant.id, plant);
    const row = this.rowOf(plant);
    if (row !== -1) this.#plants[row] = plant;
    this.#onChange();
  }

  /** Removes the row of a plant that is gone. */
  remove(id: number): void {
    this.#changed.set(id, undefined);
    this.#plants = this.#plants.filter((plant) => plant.id !== id);
    this.#onChange();
  }

  async #readWanted(): Promise<void> {
    this.failure = undefined;
    try {
      while (!this.isComplete && !this.isFull && this.count < this.#wanted) {
        this.#changed.clear();
        const last = this.#plants.at(-1)?.id ?? 0;
        const read = await this.#read(last || undefined);
        const hasGrown = this.#changed
          .values()
          .some((plant) => plant !== undefined && plant.id > last);
        if (read.length === 0) this.isComplete = !hasGrown;
        for (const plant of read) {
          const { id } = plant;
          const current = this.#changed.has(id) ? this.#changed.get(id) : plant;
          if (current !== undefined) this.#plants.push(current);
          this.owners.add(plant.owner);
        }
        this.#onChange();
      }
    } catch (error) {
      this.failure = error;
      this.#onChange();
    }
  }
}
