/**
 * The caches of grants and first pages. Each request first checks the versions of its store, which is how a
 * revoked token or a changed role is noticed. One query serves all requests that arrived before it was sent.
 */
import type { Grant } from '../access.ts';
import { Cache } from '../cache.ts';
import type { PlantPage } from '../plant-storage.ts';
import { prepared } from './connection.ts';
import type { Cluster } from './cluster.ts';

/** Maximum age of a cached grant or page: another program can change what is in it without changing the version. */
const maxAgeMs = 10_000;
/** Maximum numbers of cached grants and stores, and of characters in cached pages. */
const maxGrants = 10_000;
const maxStores = 10_000;
const maxPageChars = 8 * 1024 * 1024;
/** What a cached page weighs besides its text. */
const entryOverheadChars = 200;

export const refreshSql = prepared<VersionsRow>(
  'refresh',
  'SELECT version, writer, grants FROM plant_store.stores WHERE store = $1',
);

/**
 * The versions of a store's plants and of its grants. Compare them for equality only, because a restored database
 * can have older ones. None is used twice.
 */
export interface Versions {
  /** Undefined if this process has written since the query was sent: its response can be older. */
  plants: string | undefined;
  grants: number;
}

interface StoreState {
  /** Undefined before the first response, and if the store does not exist. */
  versions?: Versions | undefined;
  /** Number of writes by this process. */
  writes: number;
  /** The query in flight, and the one that follows it. */
  inFlight?: Promise<void> | undefined;
  next?: Promise<void> | undefined;
}

export class Freshness {
  readonly #cluster: Cluster;
  readonly #stores = new Cache<StoreState>(maxStores);
  readonly #grants = new Cache<{ grant: Grant; version: number; untilMs: number }>(maxGrants);
  readonly #pages = new Cache<{ page: PlantPage; version: string; untilMs: number }>(
    maxPageChars,
    ({ page }) => page.json.length + entryOverheadChars,
  );

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** The versions as of this call or later; undefined if the store does not exist. */
  async refresh(store: number): Promise<Versions | undefined> {
    const state = this.#stateOf(store);
    state.next ??= this.#queryNext(store, state);
    await state.next;
    return state.versions;
  }

  /** The same, but only if versions are cached. Without them, no cached page is used, so a list reads its own. */
  async refreshCached(store: number): Promise<void> {
    if (this.#stores.get(String(store)) !== undefined) await this.refresh(store);
  }

  /** This process has changed plants of the store: what was read before is stale. */
  invalidatePlants(store: number): void {
    const state = this.#stateOf(store);
    state.writes++;
    if (state.versions !== undefined) state.versions.plants = undefined;
  }

  /** A cached page, if the store has not changed since. Call it after refresh(). */
  getPage(store: number, key: string): PlantPage | undefined {
    const cached = this.#pages.get(key);
    if (cached === undefined || performance.now() >= cached.untilMs) return undefined;
    return cached.version === this.getVersion(store) ? cached.page : undefined;
  }

  /** The latest version of the plants that is known: what is read from now on is at least as new. */
  getVersion(store: number): string | undefined {
    return this.#stateOf(store).versions?.plants;
  }

  /** `version` is that of the page, or was current just before the page was read. */
  setPage(key: string, page: PlantPage, version: string): void {
    this.#pages.set(key, { page, version, untilMs: performance.now() + maxAgeMs });
  }

  getGrant(key: string): { grant: Grant; version: number } | undefined {
    const cached = this.#grants.get(key);
    return cached !== undefined && performance.now() < cached.untilMs ? cached : undefined;
  }

  /** The grant was read together with this version of the grants. */
  setGrant(key: string, grant: Grant, version: number): void {
    this.#grants.set(key, { grant, version, untilMs: performance.now() + maxAgeMs });
  }

  /** Call it for the stores of a server when a connection is lost: the next server can have other data. */
  clear(isOfServer: (store: number) => boolean): void {
    this.#stores.deleteWhere((_, key) => isOfServer(Number(key)));
    this.#grants.deleteWhere(({ grant }) => isOfServer(grant.caller.store));
    this.#pages.deleteWhere((_, key) => isOfServer(Number(key.split(' ')[0])));
  }

  #stateOf(store: number): StoreState {
    return this.#stores.getOrLoad(String(store), () => ({ writes: 0 }));
  }

  /** Waits for the query in flight, which can be older than the caller. */
  async #queryNext(store: number, state: StoreState): Promise<void> {
    try {
      await state.inFlight; // if that one fails, another would fail too
    } finally {
      state.next = undefined;
    }
    state.inFlight = this.#query(store, state);
    await state.inFlight;
  }

  async #query(store: number, state: StoreState): Promise<void> {
    try {
      const { writes } = state;
      const [row] = await this.#cluster.read(store, refreshSql, [store]);
      state.versions = row && versionsOf(row);
      if (state.versions !== undefined && state.writes > writes) state.versions.plants = undefined;
    } finally {
      state.inFlight = undefined;
    }
  }
}

export type VersionsRow = readonly [version: number, writer: string, grants: number];

export function versionsOf([version, writer, grants]: VersionsRow): Versions {
  return { plants: `${version} ${writer}`, grants };
}
