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

/** Reads up to `pageSize` plants with ids above `after`. */
type ReadPage = (after: number | undefined) => Promise<{ plants: Plant[]; isLast: boolean }>;

/** Plants as they are now, undefined if they are gone. */
type Changed = Map<number, Plant | undefined>;

export class PlantList {
  readonly #read: ReadPage;
  readonly #onChange: () => void;
  #plants: Plant[] = [];
  /** The row that the keyboard is in: the last one that was chosen, or added. It moves with its plant. */
  active = 0;
  /** Whether the table has to scroll to that row. */
  isSought = false;
  /** The plant that is edited. Its row stays until `release`, also if it is gone or leaves the view. */
  #held: { id: number; isGone: boolean } | undefined;
  /** Plants that changed during the read in progress: its answer can be older than that. */
  #changed: Changed | undefined;
  /** The names of the owners of all plants that were here. */
  readonly owners = new Set<string>();
  /** Whether `count` is all there are. */
  isComplete = false;
  #wanted = 0;
  #isStale = false;
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
    this.#isStale = false;
  }

  /** Resolves when no request is in flight. */
  async settled(): Promise<void> {
    await this.#reading;
  }

  /** The first row with this id or a later one; `count` if there is none. */
  rowFrom(id: number): number {
    let [first, end] = [0, this.count];
    while (first < end) {
      const middle = (first + end) >> 1;
      if ((this.#plants[middle]?.id ?? id) < id) first = middle + 1;
      else end = middle;
    }
    return first;
  }

  /** The plant with this id, if it has a row. */
  find(id: number): Plant | undefined {
    const plant = this.#plants[this.rowFrom(id)];
    return plant?.id === id ? plant : undefined;
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

  /** Shows a plant that was added, if its place in the list is known, and moves the keyboard to it. */
  add(plant: Plant): void {
    this.apply(new Map([[plant.id, plant]]));
    if (this.find(plant.id) === undefined) return;
    this.active = this.rowFrom(plant.id);
    this.isSought = true;
    this.#onChange();
  }

  /** Shows a plant as it is now, if it has a row. */
  replace(plant: Plant): void {
    this.#changed?.set(plant.id, plant);
    if (this.find(plant.id) !== undefined) this.#plants[this.rowFrom(plant.id)] = plant;
    if (this.#held?.id === plant.id) this.#held.isGone = false;
    this.#onChange();
  }

  /** Shows plants as they are now, undefined if they are gone, where their places are known. */
  apply(changes: ReadonlyMap<number, Plant | undefined>): void {
    for (const [id, plant] of changes) {
      this.#changed?.set(id, plant);
      if (plant !== undefined) this.owners.add(plant.owner);
    }
    this.#show(this.#plants, changes);
  }

  /** Shows these plants, and of the changes what is within them. */
  #show(plants: readonly Plant[], changes: ReadonlyMap<number, Plant | undefined>): void {
    const activeId = this.#plants[this.active]?.id ?? 0;
    const last = this.isComplete ? Infinity : (plants.at(-1)?.id ?? 0);
    const unchanged = plants.filter(({ id }) => !changes.has(id));
    const current = [...changes.values()].filter((plant) => plant !== undefined);
    const known = current.filter(({ id }) => id <= last);
    const all = [...unchanged, ...known];
    const held = this.#held;
    const row = held && this.find(held.id);
    if (held && row) {
      held.isGone = !all.some(({ id }) => id === held.id);
      if (held.isGone) all.push(row);
    }
    this.#plants = all.toSorted((one, other) => one.id - other.id);
    this.active = Math.min(this.rowFrom(activeId), Math.max(0, this.count - 1));
    this.#onChange();
  }

  #start(): void {
    this.#reading ??= this.#readWanted().finally(() => {
      this.#reading = undefined;
      if (this.#isStale && this.failure === undefined) this.#start();
    });
  }

  async #readWanted(): Promise<void> {
    this.failure = undefined;
    try {
      while (this.#isStale || this.#isShort()) {
        const changed: Changed = (this.#changed = new Map());
        await (this.#isStale ? this.#readAgain(changed) : this.#readMore(changed));
      }
    } catch (error) {
      this.failure = error;
      this.#onChange();
    } finally {
      this.#changed = undefined;
    }
  }

  #isShort(): boolean {
    return !this.isComplete && !this.isFull && this.count < this.#wanted;
  }

  async #readMore(changed: Changed): Promise<void> {
    const last = this.#plants.at(-1)?.id ?? 0;
    const { plants, isLast } = await this.#read(last || undefined);
    const end = plants.at(-1)?.id ?? last;
    const hasGrown = changed.values().some((plant) => plant !== undefined && plant.id > end);
    this.isComplete = isLast && !hasGrown;
    for (const plant of plants) {
      const { id } = plant;
      const current = changed.has(id) ? changed.get(id) : plant;
      if (current !== undefined) this.#plants.push(current);
      this.owners.add(plant.owner);
    }
    this.#onChange();
  }

  async #readAgain(changed: Changed): Promise<void> {
    this.#isStale = false;
    const known = this.#plants.at(-1)?.id ?? 0;
    // The end of a list that was complete is shown too, unless much has been added there.
    const maxCount = this.isComplete ? this.count + 4 * pageSize : 0;
    const found: Plant[] = [];
    let isEnd: boolean;
    do {
      const { plants, isLast } = await this.#read(found.at(-1)?.id);
      found.push(...plants);
      for (const { owner } of plants) this.owners.add(owner);
      isEnd = isLast;
    } while (!isEnd && ((found.at(-1)?.id ?? 0) < known || found.length < maxCount));
    this.isComplete = isEnd;
    this.#show(found, changed);
  }
}
