/**
 * Tells what has changed in a store, so that what was read before can be used again for as long as
 * nothing has. One question answers all requests that came before it was put, however many they are.
 */
import type { Grant } from '../access.ts';
import { Memory } from '../memory.ts';
import type { PlantPage } from '../storage.ts';
import type { Statement } from './connection.ts';
import type { Pool } from './pool.ts';

/**
 * A grant is read anew after this time, whatever the counter says: a transaction over several machines of
 * a cluster that broke off may be finished long after it was counted.
 */
const grantMsMax = 10_000;
/** Grants and stores that are known, and characters of pages. */
const grantsMax = 10_000;
const storesMax = 10_000;
const pageCharsMax = 8 * 1024 * 1024;
/** What an entry takes besides its text, be it empty. */
const entryChars = 200;

export const lookSql: Statement = {
  name: 'look',
  text: 'SELECT version, grants FROM plant_store.stores WHERE store = $1',
};

/** Counts of the changes of a store: to its plants, and to who may do what. */
export interface Changes {
  version: number;
  grants: number;
}

interface Known {
  /** Undefined as long as nobody has asked. */
  changes?: Changes | undefined;
  /** The question that is under way, and the one that will be put after it. */
  asking?: Promise<void> | undefined;
  next?: Promise<void> | undefined;
}

export class Watch {
  readonly #pool: Pool;
  readonly #stores = new Memory<Known>(storesMax);
  readonly #grants = new Memory<{ grant: Grant; as: number; untilMs: number }>(grantsMax);
  readonly #pages = new Memory<{ page: PlantPage; as: number }>(
    pageCharsMax,
    ({ page }) => page.json.length + entryChars,
  );

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** How the store is at some moment after this was called, or later. */
  async look(store: number): Promise<Changes> {
    const known = this.#known(store);
    known.next ??= this.#askNext(store, known);
    await known.next;
    return known.changes ?? { version: 0, grants: 0 }; // it has been asked for
  }

  /** A change of our own: what was read before it does not hold. */
  changed(store: number, version: number): void {
    this.#raise(this.#known(store), version, 0);
  }

  /** A page that was read before, where the store has not changed since. */
  page(store: number, key: string): PlantPage | undefined {
    const kept = this.#pages.get(key);
    return kept !== undefined && kept.as === this.version(store) ? kept.page : undefined;
  }

  /** The last version of the store that is known: what is read from now on shows at least that. */
  version(store: number): number | undefined {
    return this.#known(store).changes?.version;
  }

  /** `version` was known before the page was read. */
  keepPage(key: string, page: PlantPage, version: number): void {
    this.#pages.keep(key, { page, as: version });
  }

  grant(key: string): { grant: Grant; as: number } | undefined {
    const kept = this.#grants.get(key);
    return kept !== undefined && performance.now() < kept.untilMs ? kept : undefined;
  }

  /** What was read after `grants` was what look() said. */
  keepGrant(key: string, grant: Grant, grants: number): void {
    this.#grants.keep(key, { grant, as: grants, untilMs: performance.now() + grantMsMax });
  }

  /** Forgets everything: the server may be another one, and count from elsewhere. */
  forget(): void {
    for (const memory of [this.#stores, this.#grants, this.#pages]) memory.forget();
  }

  #known(store: number): Known {
    return this.#stores.recall(String(store), () => ({}));
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
      const [row] = await this.#pool.read(lookSql, [store]);
      const [version = 0, grants = 0] = (row ?? []) as readonly number[];
      this.#raise(known, version, grants);
    } finally {
      known.asking = undefined;
    }
  }

  /** Never back: an answer may be older than a change of our own that was made meanwhile. */
  #raise(known: Known, version: number, grants: number): void {
    known.changes = {
      version: Math.max(known.changes?.version ?? 0, version),
      grants: Math.max(known.changes?.grants ?? 0, grants),
    };
  }
}
