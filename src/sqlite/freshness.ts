/**
 * The caches of grants and first pages. Each request first checks whether another connection has written. That
 * detects revoked tokens and changed roles.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Grant, ReadAccess } from '../access.ts';
import { Cache } from '../cache.ts';
import type { PlantPage } from '../plant-storage.ts';
import type { SchemaCheck } from './migrate.ts';
import { prepare, type Statement } from './statement.ts';
import type { Stores } from './stores.ts';

/** Maximum number of cached grants, and of characters in cached pages. */
const maxGrants = 10_000;
const maxPageChars = 8 * 1024 * 1024;
/** The overhead of a cached page, in characters. */
const entryOverheadChars = 200;
/** Maximum age of a cached page: another program can change plants without changing the version. */
const maxPageAgeMs = 10_000;

interface CachedPage {
  page: PlantPage;
  /** Read before the page, so the page is at least as new. */
  version: string;
  untilMs: number;
  /** The value of `#writes` when the page was last known to be current. */
  writes: number;
}

export class Freshness {
  /** Cached until any token or user changes. */
  readonly grants = new Cache<Grant>(maxGrants);
  readonly #pages = new Cache<CachedPage>(
    maxPageChars,
    ({ page }) => page.json.length + entryOverheadChars,
  );
  readonly #stores: Stores;
  readonly #schema: SchemaCheck;
  /**
   * Differs after every commit of another connection, in any process
   * (sqlite.org/pragma.html#pragma_data_version). It takes a fraction of the time of any other read.
   */
  readonly #readDataVersion: Statement<[version: number]>;
  readonly #readGrantChanges: Statement<[count: number]>;
  #dataVersion: number | undefined;
  #grantChanges: number | undefined;
  /** How often writes by other connections were detected or reported. */
  #detectedWrites = 0;

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
    this.invalidatePages();
    this.#schema.check();
    const grantChanges = this.#readGrantChanges.get()?.[0];
    if (grantChanges !== this.#grantChanges) this.grants.clear();
    // Set last, so that the next call checks again if a read fails.
    this.#dataVersion = dataVersion;
    this.#grantChanges = grantChanges;
  }

  /** Makes the next use of each cached page check its version. */
  invalidatePages(): void {
    this.#detectedWrites++;
  }

  /** Returns the cached page. If there is none or the caller's plants have changed, reads and caches it. */
  getOrReadPage(caller: ReadAccess, key: string, read: () => PlantPage): PlantPage {
    const writes = this.#detectedWrites;
    const cached = this.#pages.get(key);
    if (cached?.writes === writes) return cached.page;
    const version = this.#stores.version(caller);
    const nowMs = performance.now();
    if (cached?.version === version && nowMs < cached.untilMs) {
      cached.writes = writes;
      return cached.page;
    }
    const page = read();
    this.#pages.set(key, { page, version, untilMs: nowMs + maxPageAgeMs, writes });
    return page;
  }
}
