/**
 * The caches of grants and first pages, and whether they still hold: each request first asks whether anybody
 * has written to the file. A token that was revoked, or a role that has changed, is noticed here.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Grant, ReadAccess } from '../access.ts';
import { Cache } from '../cache.ts';
import type { PlantPage } from '../plant-storage.ts';
import type { SchemaCheck } from './migrate.ts';
import { prepare, type Statement } from './statement.ts';
import type { Stores } from './stores.ts';

/** Grants that are kept, and characters of pages. */
const grantsMax = 10_000;
const pageCharsMax = 8 * 1024 * 1024;
/** What an entry takes besides its text, be it empty. */
const entryChars = 200;
/** How long a change by another program, which does not raise versions, can be missing from a page. */
const pageMsMax = 10_000;

interface Page {
  page: PlantPage;
  /** Read before the page, so that the page has all changes up to it. */
  version: string;
  untilMs: number;
  /** The count of changes up to which the page is known to be right. */
  changes: number;
}

export class Freshness {
  /** Hold until a token or a user changes. */
  readonly grants = new Cache<Grant>(grantsMax);
  readonly #pages = new Cache<Page>(pageCharsMax, ({ page }) => page.json.length + entryChars);
  readonly #stores: Stores;
  readonly #schema: SchemaCheck;
  /**
   * A number that SQLite changes with each commit of another connection, in whatever process
   * (sqlite.org/pragma.html#pragma_data_version). Asking takes a read transaction, so the answer
   * is true after the question was put, and costs a fraction of any other read.
   */
  readonly #dataVersion: Statement<[version: number]>;
  readonly #grantChanges: Statement<[count: number]>;
  #version: number | undefined;
  #grantCount: number | undefined;
  /** How often this connection noticed, or was told, that others have written. */
  #changes = 0;

  /** `database` must never write: a connection is not told of commits of its own. */
  constructor(database: DatabaseSync, stores: Stores, schema: SchemaCheck) {
    this.#stores = stores;
    this.#schema = schema;
    this.#dataVersion = prepare(database, 'PRAGMA data_version');
    this.#grantChanges = prepare(database, 'SELECT count FROM grant_changes');
  }

  /** Forgets what no longer holds. Throws Refusal if a newer program has made the schema unusable. */
  refresh(): void {
    const version = this.#dataVersion.get()?.[0];
    if (version === this.#version) return;
    this.changed();
    this.#schema.check();
    const grantCount = this.#grantChanges.get()?.[0];
    if (grantCount !== this.#grantCount) this.grants.clear();
    // Last: where a question cannot be answered, it is put again.
    this.#version = version;
    this.#grantCount = grantCount;
  }

  /** Pages are compared with their versions before they are used again. */
  changed(): void {
    this.#changes++;
  }

  /** The cached page, or what `read` returns if a change of the caller's plants came after it. */
  page(caller: ReadAccess, key: string, read: () => PlantPage): PlantPage {
    const changes = this.#changes;
    const cached = this.#pages.get(key);
    if (cached?.changes === changes) return cached.page;
    const version = this.#stores.version(caller);
    const nowMs = performance.now();
    if (cached?.version === version && nowMs < cached.untilMs) {
      cached.changes = changes;
      return cached.page;
    }
    const page = read();
    this.#pages.set(key, { page, version, untilMs: nowMs + pageMsMax, changes });
    return page;
  }
}
