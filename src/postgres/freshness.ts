/**
 * The caches of grants and first pages, and whether they still hold: each request first asks whether its store
 * has changed. A token that was revoked, or a role that has changed, is noticed here. One question answers all
 * requests that came before it, however many they are.
 */
import type { Grant } from '../access.ts';
import { Memory } from '../memory.ts';
import type { PlantPage } from '../plant-storage.ts';
import { prepared } from './connection.ts';
import type { Pool } from './pool.ts';

/**
 * A grant is read anew after this time, whatever its mark says: a transaction over several machines of
 * a cluster that broke off may be finished long after its mark was seen.
 */
const grantMsMax = 10_000;
/** How long a change by another program, which changes no mark, can be missing from a page. */
const pageMsMax = 10_000;
/** Grants and stores that are known, and characters of pages. */
const grantsMax = 10_000;
const storesMax = 10_000;
const pageCharsMax = 8 * 1024 * 1024;
/** What an entry takes besides its text, be it empty. */
const entryChars = 200;

export const refreshSql = prepared<MarksRow>(
  'refresh',
  'SELECT version, writer, grants FROM plant_store.stores WHERE store = $1',
);

/**
 * Marks of a store, each another one after every change: of its plants, and of who may do what. They are
 * compared and not ordered, and no mark comes twice: a database that was restored begins with older ones.
 */
export interface Marks {
  /** Undefined where a change of our own came after the question: the answer may be older. */
  plants: string | undefined;
  grants: number;
}

interface Known {
  /** Undefined as long as nobody has asked, and where the store is not there. */
  marks?: Marks | undefined;
  /** Counts the changes of our own. */
  changes: number;
  /** The question that is under way, and the one that will be put after it. */
  asking?: Promise<void> | undefined;
  next?: Promise<void> | undefined;
}

export class Freshness {
  readonly #pool: Pool;
  readonly #stores = new Memory<Known>(storesMax);
  readonly #grants = new Memory<{ grant: Grant; as: number; untilMs: number }>(grantsMax);
  readonly #pages = new Memory<{ page: PlantPage; as: string; untilMs: number }>(
    pageCharsMax,
    ({ page }) => page.json.length + entryChars,
  );

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** How the store is at some moment after this was called, or later; undefined where it is not there. */
  async refresh(store: number): Promise<Marks | undefined> {
    const known = this.#known(store);
    known.next ??= this.#askNext(store, known);
    await known.next;
    return known.marks;
  }

  /** A change of our own: what was read before it does not hold. */
  changed(store: number): void {
    const known = this.#known(store);
    known.changes++;
    if (known.marks !== undefined) known.marks.plants = undefined;
  }

  /**
   * A page that was read before, if the store has not changed since. Identifying the caller has asked for the
   * mark after the request came.
   */
  page(store: number, key: string): PlantPage | undefined {
    const kept = this.#pages.get(key);
    if (kept === undefined || performance.now() >= kept.untilMs) return undefined;
    return kept.as === this.mark(store) ? kept.page : undefined;
  }

  /** The last mark of the plants that is known: what is read from now on shows at least that. */
  mark(store: number): string | undefined {
    return this.#known(store).marks?.plants;
  }

  /** `mark` was known before the page was read. */
  keepPage(key: string, page: PlantPage, mark: string): void {
    this.#pages.keep(key, { page, as: mark, untilMs: performance.now() + pageMsMax });
  }

  grant(key: string): { grant: Grant; as: number } | undefined {
    const kept = this.#grants.get(key);
    return kept !== undefined && performance.now() < kept.untilMs ? kept : undefined;
  }

  /** What was read after `grants` was what refresh() returned. */
  keepGrant(key: string, grant: Grant, grants: number): void {
    this.#grants.keep(key, { grant, as: grants, untilMs: performance.now() + grantMsMax });
  }

  /** Forgets everything: the server may be another one. */
  forget(): void {
    for (const memory of [this.#stores, this.#grants, this.#pages]) memory.forget();
  }

  #known(store: number): Known {
    return this.#stores.recall(String(store), () => ({ changes: 0 }));
  }

  /** Waits for the question that is under way: it may be older than who asks. */
  async #askNext(store: number, known: Known): Promise<void> {
    try {
      await known.asking; // where that one gets no answer, another would not either
    } finally {
      known.next = undefined;
    }
    known.asking = this.#ask(store, known);
    await known.asking;
  }

  async #ask(store: number, known: Known): Promise<void> {
    try {
      const { changes } = known;
      const [row] = await this.#pool.read(refreshSql, [store]);
      known.marks = row && marksOf(row);
      if (known.marks !== undefined && known.changes > changes) known.marks.plants = undefined;
    } finally {
      known.asking = undefined;
    }
  }
}

type MarksRow = readonly [version: number, writer: string, grants: number];

function marksOf([version, writer, grants]: MarksRow): Marks {
  return { plants: `${version} ${writer}`, grants };
}
