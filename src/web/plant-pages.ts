/**
 * A list of plants of any length, read page by page while it is shown. Only the pages around the visible rows are in
 * memory. Of the other pages, only the last ids remain, as cursors to read them again.
 */

export interface Plant {
  id: number;
  name: string;
  tag: string;
}

interface Page {
  /** The largest id that belongs to this page; it is the cursor of the next one. */
  last: number;
  /** The number of rows. It is exact only after the page was read again, if others change the store meanwhile. */
  size: number;
  /** Undefined after the page was dropped. */
  rows: Plant[] | undefined;
}

export const pageSize = 250;
/** How many pages before and after the drawn ones stay in memory. */
const keptPages = 8;

/** Reads up to `pageSize` plants with ids above `after`. An empty result is the end of the list. */
export type ReadPage = (after: number | undefined) => Promise<Plant[]>;

export class PlantPages {
  readonly #read: ReadPage;
  readonly #onChange: () => void;
  readonly #pages: Page[] = [];
  /** Plants that were removed since the last read began: its answer can be older than that. */
  readonly #removed = new Set<number>();
  #ended = false;
  /** Whether a plant was added beyond the known ones since the last read began. */
  #hasGrown = false;
  #drawn = { first: 0, last: 0 };
  #reading = false;
  #failure: unknown;

  constructor(read: ReadPage, onChange: () => void) {
    this.#read = read;
    this.#onChange = onChange;
  }

  /** The number of rows that are known so far. */
  get count(): number {
    return this.#pages.reduce((sum, page) => sum + page.size, 0);
  }

  /** Whether `count` is all there are. */
  get isComplete(): boolean {
    return this.#ended;
  }

  /** The error that stopped reading; undefined if there is none. `see` resumes reading. */
  get failure(): unknown {
    return this.#failure;
  }

  /** The rows from `first` up to `end`, exclusively; undefined for those that are not in memory. */
  slice(first: number, end: number): (Plant | undefined)[] {
    const found: (Plant | undefined)[] = [];
    let start = 0;
    for (const { rows, size } of this.#pages) {
      if (start >= end) break;
      for (let at = Math.max(first, start); at < Math.min(end, start + size); at++) {
        found.push(rows?.[at - start]);
      }
      start += size;
    }
    return found;
  }

  /** The rows between two plants, both included; undefined for those that are not in memory. */
  between(one: number, other: number): (Plant | undefined)[] {
    const [first, last] = [Math.min(one, other), Math.max(one, other)];
    const start = this.#pages.findIndex((page) => first <= page.last);
    const end = this.#pages.findIndex((page) => last <= page.last);
    return this.#pages
      .slice(start, end + 1)
      .flatMap(({ rows, size }) => rows ?? Array.from({ length: size }, () => undefined))
      .filter((plant) => plant === undefined || (first <= plant.id && plant.id <= last));
  }

  /** Sets which rows are drawn: reads those that are missing and some more, and drops those far away. */
  see(first: number, last: number): void {
    this.#drawn = { first, last };
    const [from, to] = [this.#pageAt(first) - keptPages, this.#pageAt(last) + keptPages];
    this.#pages.forEach((page, at) => {
      if (at < from || at > to) page.rows = undefined;
    });
    if (!this.#reading) void this.#readWanted();
  }

  /** Shows a plant that was added, if its place in the list is known. Returns its row. */
  add(plant: Plant): number | undefined {
    this.#removed.delete(plant.id);
    const last = this.#pages.at(-1);
    if (last === undefined || plant.id > last.last) {
      if (!this.#ended) {
        this.#hasGrown = true;
        return undefined;
      }
      if (last === undefined) this.#pages.push({ last: plant.id, size: 1, rows: [plant] });
      else {
        last.last = plant.id;
        last.size++;
        last.rows?.push(plant);
      }
    } else this.#insert(plant);
    this.#onChange();
    return this.#rowOf(plant.id);
  }

  /** Removes the row of a plant that is gone. */
  remove(id: number): void {
    this.#removed.add(id);
    const page = this.#pageOf(id);
    const at = page?.rows?.findIndex((plant) => plant.id === id) ?? -1;
    if (page === undefined || (page.rows !== undefined && at === -1)) return;
    page.rows?.splice(at, 1);
    page.size--;
    this.#onChange();
  }

  #insert(plant: Plant): void {
    const page = this.#pageOf(plant.id);
    if (page === undefined) return;
    if (page.rows?.some(({ id }) => id === plant.id)) return; // it was read meanwhile
    page.size++;
    if (page.rows === undefined) return;
    const at = page.rows.findIndex(({ id }) => id > plant.id);
    page.rows.splice(at === -1 ? page.rows.length : at, 0, plant);
  }

  /** Reads one page at a time, the first missing one around the visible rows: these can change meanwhile. */
  async #readWanted(): Promise<void> {
    this.#reading = true;
    this.#failure = undefined;
    try {
      for (let at = this.#wanted(); at !== undefined; at = this.#wanted()) {
        await this.#readAt(at);
        this.#onChange();
      }
    } catch (error) {
      this.#failure = error;
      this.#onChange();
    } finally {
      this.#reading = false;
    }
  }

  #wanted(): number | undefined {
    const [from, to] = [this.#pageAt(this.#drawn.first), this.#pageAt(this.#drawn.last)];
    for (let at = from; at <= to + 1; at++) {
      const page = this.#pages[at];
      if (page === undefined) return this.#ended ? undefined : this.#pages.length;
      if (page.rows === undefined) return at;
    }
    return undefined;
  }

  async #readAt(at: number): Promise<void> {
    this.#hasGrown = false;
    this.#removed.clear();
    const read = await this.#read(this.#pages[at - 1]?.last);
    const plants = read.filter(({ id }) => !this.#removed.has(id));
    const page = this.#pages[at];
    if (page === undefined) {
      const last = read.at(-1);
      if (last === undefined) this.#ended = !this.#hasGrown;
      else this.#pages.push({ last: last.id, size: plants.length, rows: plants });
      return;
    }
    const rows = plants.filter(({ id }) => id <= page.last);
    const last = read.at(-1);
    if (last !== undefined && read.length >= pageSize && last.id < page.last) {
      // Others have added plants, so the page is too large: its first plants become a page of their own.
      this.#pages.splice(at, 0, { last: last.id, size: rows.length, rows });
      page.size = Math.max(0, page.size - rows.length);
    } else {
      page.rows = rows;
      page.size = rows.length;
    }
  }

  /** The index of the page with this row, or of the one after the last. */
  #pageAt(row: number): number {
    let end = 0;
    const at = this.#pages.findIndex(({ size }) => (end += size) > row);
    return at === -1 ? this.#pages.length : at;
  }

  #pageOf(id: number): Page | undefined {
    return this.#pages.find(({ last }) => id <= last);
  }

  #rowOf(id: number): number | undefined {
    let start = 0;
    for (const { last, size, rows } of this.#pages) {
      if (id <= last) {
        const at = rows?.findIndex((plant) => plant.id === id) ?? -1;
        return at === -1 ? undefined : start + at;
      }
      start += size;
    }
    return undefined;
  }
}
