/**
 * The caches of grants and first pages. Each request first checks whether the file has changed, which is how
 * a revoked token or a changed role is noticed.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Grant, ReadAccess } from '../access.ts';
import { Cache } from '../cache.ts';
import type { PlantPage } from '../plant-storage.ts';
import type { SchemaCheck } from './migrate.ts';
import { prepare, type Statement } from './statement.ts';
import type { Stores } from './stores.ts';

/** Cached grants, and characters of cached pages. */
const grantsMax = 10_000;
const pageCharsMax = 8 * 1024 * 1024;
/** What a cached page weighs besides its text. */
const entryChars = 200;
/** Maximum age of a cached page: another program can change plants without changing the version. */
const pageMsMax = 10_000;

interface CachedPage {
  page: PlantPage;
  /** Read before the page, so the page is at least as new. */
  version: string;
  untilMs: number;
  /** The value of `#changes` for which the page was last known to be current. */
  changes: number;
}

export class Freshness {
  /** Cached until any token or user changes. */
  readonly grants = new Cache<Grant>(grantsMax);
  readonly #pages = new Cache<CachedPage>(
    pageCharsMax,
    ({ page }) => page.json.length + entryChars,
  );
  readonly #stores: Stores;
  readonly #schema: SchemaCheck;
  /**
   * Changes with every commit of another connection, in any process
   * (sqlite.org/pragma.html#pragma_data_version). SQLite reads it in a read transaction, at a fraction of the
   * cost of any other read.
   */
  readonly #readDataVersion: Statement<[version: number]>;
  readonly #readGrantChanges: Statement<[count: number]>;
  #dataVersion: number | undefined;
  #grantChanges: number | undefined;
  /** Number of detected or reported writes by other connections. */
  #changes = 0;

  /** `database` must never write: its own commits do not change data_version. */
  constructor(database: DatabaseSync, stores: Stores, schema: SchemaCheck) {
    this.#stores = stores;
    this.#schema = schema;
    this.#readDataVersion = prepare(database, 'PRAGMA data_version');
    this.#readGrantChanges = prepare(database, 'SELECT count FROM grant_changes');
  }

  /** Drops stale grants. Throws Refusal if a newer program has made the schema unusable. */
  refresh(): void {
    const dataVersion = this.#readDataVersion.get()?.[0];
    if (dataVersion === this.#dataVersion) return;
    this.changed();
    this.#schema.check();
    const grantChanges = this.#readGrantChanges.get()?.[0];
    if (grantChanges !== this.#grantChanges) this.grants.clear();
    // Last, so that the next call checks again if a read fails.
    this.#dataVersion = dataVersion;
    this.#grantChanges = grantChanges;
  }

  /** Another connection has written: the versions of cached pages are checked before they are used again. */
  changed(): void {
    this.#changes++;
  }

  /** The cached page, or what `read` returns if the caller's plants have changed since. */
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
