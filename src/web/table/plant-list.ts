/**
 * A list of plants, read page by page as far as the user scrolls.
 */
import type { Plant } from '../../client/client.ts';
import { allFields } from '../../client/types.ts';
import { pause } from '../../client/waiting.ts';
import type { Order } from './orders.ts';

/** What a row shows, or needs. */
export const rowFields = allFields;
/** Whether the user can change the plant. */
export const isWritable = ({ access }: Plant) => access === 'write';

/** How many rows are read ahead. */
export const pageSize = 250;
/** Browsers limit the height of an element to 18 million pixels, and rows can be 100 pixels high. */
const maxRows = 100_000;
/** To count plants, the service may have to search all. So what others do is counted at most once in this time. */
const countPauseMs = 5_000;

interface Page {
  plants: readonly Plant[];
  isLast: boolean;
}

/** Where the plants of a list come from. */
export interface PlantSource {
  /** Reads them from the beginning, in the order of `compare`. */
  pages: () => AsyncGenerator<Page, void>;
  compare: Order;
  count: () => Promise<number>;
}

/** Plants as they are now, undefined if they are gone. */
type Changed = Map<number, Plant | undefined>;

export class PlantList {
  readonly #source: PlantSource;
  readonly #onChange: () => void;
  #plants: Plant[] = [];
  readonly #byId = new Map<number, Plant>();
  /** Its next page follows the rows. */
  #pages: AsyncGenerator<Page, void> | undefined;
  /** The last plant that was read. Which plants follow it is not known yet. */
  #end: Plant | undefined;
  /** How many plants follow it, as far as that is known. */
  #rest: number | undefined;
  #isCounting = false;
  #isMiscounted = false;
  /** The row that the keyboard is in: the last one that was chosen, or added. It moves with its plant. */
  active = 0;
  /** Whether the table has to scroll to that row. */
  isSought = false;
  /** Whether all rows are read, and not only those that the table shows. */
  wantsAll = false;
  /** The plant that is edited. Its row stays until `release`, also if it is gone or leaves the view. */
  #held: { id: number; isGone: boolean } | undefined;
  /** Plants that changed during the read in progress: its answer can be older than that. */
  #changed: Changed | undefined;
  /** The same for plants that need not be in the view. */
  #replaced = new Map<number, Plant>();
  /** The names of the owners of all plants that were here. */
  readonly owners = new Set<string>();
  /** Whether `count` is all there are. */
  isComplete = false;
  #wanted = 0;
  #isStale = false;
  #reading: Promise<void> | undefined;
  /** The error that stopped reading; undefined if there is none. `refresh` resumes reading. */
  failure: unknown;

  constructor(source: PlantSource, onChange: () => void) {
    this.#source = source;
    this.#onChange = onChange;
  }

  /** The rows that are known so far, in their order. */
  get plants(): readonly Plant[] {
    return this.#plants;
  }

  get count(): number {
    return this.#plants.length;
  }

  /** The number of rows that the list has once all are read; undefined until it is known. */
  get total(): number | undefined {
    if (this.isComplete) return this.count;
    return this.#rest === undefined ? undefined : this.count + this.#rest;
  }

  /** Whether no more rows are read, though there may be some. */
  get isFull(): boolean {
    return this.count >= maxRows && !this.isComplete;
  }

  /** The rows between two plants, both included. */
  between(one: Plant, other: Plant): Plant[] {
    const rows = [this.rowFrom(one), this.rowFrom(other)];
    return this.#plants.slice(Math.min(...rows), Math.max(...rows) + 1);
  }

  /** Sets which row is the last one drawn: reads up to it, and some more. */
  see(last: number): void {
    this.#wanted = last + pageSize;
    this.#start();
  }

  /** Reads all rows that are known again, and then shows them instead. */
  refresh(): void {
    this.#isStale = true;
    this.#start();
  }

  /** Reads no more until `see` is called again. */
  stop(): void {
    this.#wanted = 0;
    this.wantsAll = false;
    this.#isStale = false;
  }

  /** Resolves when no request for rows is in flight. */
  async settled(): Promise<void> {
    await this.#reading;
  }

  /** The row of a plant, or of what follows its place if it has none; `count` if nothing does. */
  rowFrom(plant: Plant): number {
    return this.placeOf(this.find(plant.id) ?? plant);
  }

  /** The same for a plant as it was: if it was renamed in a sorted list, this is where it was before. */
  placeOf(place: Plant): number {
    let [first, end] = [0, this.count];
    while (first < end) {
      const middle = (first + end) >> 1;
      if (this.#source.compare(this.#plants[middle] ?? place, place) < 0) first = middle + 1;
      else end = middle;
    }
    return first;
  }

  /** The plant with this id, if it has a row. */
  find(id: number): Plant | undefined {
    return this.#byId.get(id);
  }

  /** Keeps the row of a plant. */
  hold(id: number): void {
    this.release();
    this.#held = { id, isGone: false };
  }

  /** Removes the row that was kept, if its plant is gone. */
  release(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held?.isGone === true) this.apply(new Map([[held.id, undefined]]));
  }

  /** Shows plants that were added, where their places are known, and moves the keyboard to the last one of them. */
  add(plants: readonly Plant[]): void {
    this.apply(new Map(plants.map((plant) => [plant.id, plant])));
    const last = plants.findLast(({ id }) => this.find(id) !== undefined);
    if (last === undefined) return;
    this.active = this.rowFrom(last);
    this.isSought = true;
    this.#onChange();
  }

  /** Shows plants as they are now, those that have a row. */
  replace(plants: readonly Plant[]): void {
    for (const plant of plants) {
      this.#replaced.set(plant.id, plant);
      this.#changed?.delete(plant.id);
    }
    const shown = plants.filter(({ id }) => this.find(id) !== undefined);
    this.#place(new Map(shown.map((plant) => [plant.id, plant])));
    this.#onChange();
  }

  /** Shows plants as they are now, undefined if they are gone, where their places are known. */
  apply(changes: ReadonlyMap<number, Plant | undefined>): void {
    for (const [id, plant] of changes) {
      this.#changed?.set(id, plant);
      if (plant !== undefined) this.owners.add(plant.owner);
    }
    this.#place(changes);
    this.#onChange();
  }

  #place(changes: ReadonlyMap<number, Plant | undefined>): void {
    const active = this.#plants[this.active];
    const held = this.#held && changes.has(this.#held.id) ? this.#held : undefined;
    const row = held && this.find(held.id);
    let isRestChanged = false;
    this.#plants = this.#plants.filter(({ id }) => !changes.has(id));
    for (const [id, plant] of changes) {
      const hadRow = this.#byId.delete(id);
      const hasRow = plant !== undefined && this.#isWithin(plant);
      if (hasRow) this.#insert(plant);
      if (!hasRow && (plant !== undefined || !hadRow)) isRestChanged = true;
    }
    if (held && row) {
      held.isGone = !this.#byId.has(held.id);
      if (held.isGone) this.#insert(row);
    }
    this.#activate(active);
    if (isRestChanged && !this.isComplete) void this.#countRest();
  }

  #insert(plant: Plant): void {
    this.#plants.splice(this.rowFrom(plant), 0, plant);
    this.#byId.set(plant.id, plant);
  }

  /** Whether the place of a plant is among the rows that were read. */
  #isWithin(plant: Plant): boolean {
    if (this.isComplete) return true;
    return this.#end !== undefined && this.#source.compare(plant, this.#end) <= 0;
  }

  #activate(plant: Plant | undefined): void {
    const row = plant === undefined ? 0 : this.rowFrom(plant);
    this.active = Math.min(row, Math.max(0, this.count - 1));
  }

  #start(): void {
    this.#reading ??= this.#readWanted().finally(() => {
      this.#reading = undefined;
      if (this.#isStale && this.failure === undefined) this.#start();
    });
  }

  async #readWanted(): Promise<void> {
    if (this.#isStale) this.failure = undefined;
    try {
      while (this.#isStale || this.#isShort()) {
        const changed: Changed = (this.#changed = new Map());
        this.#replaced.clear();
        await (this.#isStale ? this.#readAgain() : this.#readMore());
        this.#changed = undefined;
        this.#place(changed);
        this.#onChange();
      }
    } catch (error) {
      this.failure = error;
      this.#onChange();
    } finally {
      this.#changed = undefined;
    }
  }

  #isShort(): boolean {
    if (this.isComplete || this.isFull || this.failure !== undefined) return false;
    return this.wantsAll || this.count < this.#wanted;
  }

  async #readMore(): Promise<void> {
    this.#pages ??= this.#source.pages();
    const isFirst = this.#end === undefined;
    const page = await this.#next(this.#pages);
    this.#append(page);
    if (this.#rest !== undefined) this.#rest = Math.max(0, this.#rest - page.plants.length);
    if (isFirst && !this.isComplete) void this.#countRest();
  }

  async #readAgain(): Promise<void> {
    this.#isStale = false;
    const end = this.#end;
    // The end of a list that was complete is shown too, unless much has been added there.
    const maxCount = this.isComplete ? this.count + 4 * pageSize : 0;
    const isBefore = (plant: Plant | undefined) =>
      end !== undefined && (plant === undefined || this.#source.compare(plant, end) < 0);
    const pages = this.#source.pages();
    const found: Plant[] = [];
    let isLast: boolean;
    do {
      const page = await this.#next(pages);
      found.push(...page.plants);
      ({ isLast } = page);
    } while (!isLast && (isBefore(found.at(-1)) || found.length < maxCount));
    const { total } = this;
    const active = this.#plants[this.active];
    const row = this.#held && this.find(this.#held.id);
    this.#pages = pages;
    this.#plants = [];
    this.#byId.clear();
    this.#append({ plants: found, isLast });
    if (this.#held && row) {
      this.#held.isGone = !this.#byId.has(row.id);
      if (this.#held.isGone) this.#insert(row);
    }
    this.#activate(active);
    this.#rest = total && Math.max(0, total - this.count);
    if (!isLast) void this.#countRest();
  }

  async #next(pages: AsyncGenerator<Page, void>): Promise<Page> {
    const { value } = await pages.next();
    return value ?? { plants: [], isLast: true };
  }

  /** Adds the rows that follow the others. A plant that was renamed between two sorted pages can be in both. */
  #append({ plants, isLast }: Page): void {
    for (const plant of plants) {
      this.owners.add(plant.owner);
      if (this.#byId.has(plant.id)) continue;
      this.#plants.push(plant);
      this.#byId.set(plant.id, plant);
    }
    this.#end = plants.at(-1) ?? this.#end;
    this.isComplete = isLast;
    for (const { id } of plants) {
      const newer = this.#replaced.get(id);
      if (newer !== undefined) this.#changed?.set(id, newer);
    }
  }

  /** Counts what follows the rows, now or after a while. */
  async #countRest(): Promise<void> {
    this.#isMiscounted = true;
    if (this.#isCounting) return;
    this.#isCounting = true;
    try {
      while (this.#isMiscounted && !this.isComplete) {
        this.#isMiscounted = false;
        const total = await this.#source.count();
        this.#rest = Math.max(0, total - this.count);
        this.#onChange();
        await pause(countPauseMs);
      }
    } finally {
      this.#isCounting = false;
    }
  }
}
