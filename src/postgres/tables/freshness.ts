/**
 * The cache of grants. Each request first checks the version of the grants of its store, which is how a revoked token or
 * a changed role is noticed. One query serves all requests that arrived before it was sent.
 */
import type { Grant } from '../../access/access.ts';
import { Cache } from '../../shared/cache.ts';
import { prepared } from '../pool/connection.ts';
import type { Cluster } from '../citus/cluster.ts';

/** Maximum age of a cached grant: another program can change what is in it without changing the version. */
const maxAgeMs = 10_000;
const maxGrants = 10_000;

export const refreshSql = prepared<readonly [grants: number]>(
  'refresh',
  'SELECT grants FROM plant_store.stores WHERE store = $1',
);

/** The query in flight for the version of a store, and the one that follows it. */
interface Checks {
  inFlight?: Promise<number | undefined> | undefined;
  next?: Promise<number | undefined> | undefined;
}

export class Freshness {
  readonly #cluster: Cluster;
  readonly #checks = new Map<number, Checks>();
  readonly #grants = new Cache<{ grant: Grant; untilMs: number }>(maxGrants);

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /**
   * The version of the store's grants as of this call or later; undefined if the store does not exist. Compare versions
   * for equality only, because a restored database can have an older one. None is used twice.
   */
  grantsVersion(store: number): Promise<number | undefined> {
    const checks = this.#checks.get(store) ?? {};
    this.#checks.set(store, checks);
    checks.next ??= this.#queryNext(store, checks);
    return checks.next;
  }

  getGrant(key: string): Grant | undefined {
    const cached = this.#grants.get(key);
    return cached !== undefined && performance.now() < cached.untilMs ? cached.grant : undefined;
  }

  setGrant(key: string, grant: Grant): void {
    this.#grants.set(key, { grant, untilMs: performance.now() + maxAgeMs });
  }

  /** Call it for the stores of a server when a connection is lost: the next server can have other data. */
  clear(isOfServer: (store: number) => boolean): void {
    this.#grants.deleteWhere(({ grant }) => isOfServer(grant.caller.store));
  }

  /** Waits for the query in flight, which can be older than the caller. */
  async #queryNext(store: number, checks: Checks): Promise<number | undefined> {
    try {
      await checks.inFlight; // if that one fails, another would fail too
    } finally {
      checks.next = undefined;
    }
    checks.inFlight = this.#query(store);
    try {
      return await checks.inFlight;
    } finally {
      checks.inFlight = undefined;
      if (checks.next === undefined) this.#checks.delete(store);
    }
  }

  async #query(store: number): Promise<number | undefined> {
    const [row] = await this.#cluster.read(store, refreshSql, [store]);
    return row?.[0];
  }
}
