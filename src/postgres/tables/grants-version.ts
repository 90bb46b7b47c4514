/**
 * Whether a cached grant is current. Each request first checks the version of the grants of its store, which is how a
 * revoked token or a changed role is noticed. One query serves all requests that arrived before it was sent.
 */
import { randomInt } from 'node:crypto';
import { sql } from '../../sql/statement.ts';
import type { Servers } from '../servers.ts';

export const refreshSql = sql<readonly [grants: number]>`
  SELECT grants FROM plant_store.stores WHERE store = $1`;

/** Never used before, in any database: grants with the same version are the same, also after a restore or a failover. */
export function newGrantsVersion(): number {
  return randomInt(2 ** 48 - 1); // its largest range
}

export class GrantsVersions {
  readonly #servers: Servers;
  /** By store: the queries in flight for its version, and those that follow them. */
  readonly #inFlight = new Map<number, Promise<number | undefined>>();
  readonly #next = new Map<number, Promise<number | undefined>>();

  constructor(servers: Servers) {
    this.#servers = servers;
  }

  /**
   * The version of the store's grants as of this call or later; undefined if the store does not exist. Compare versions
   * for equality only, because a restored database can have an older one. None is used twice.
   */
  current(store: number): Promise<number | undefined> {
    const next = this.#next.get(store) ?? this.#queryNext(store);
    this.#next.set(store, next);
    return next;
  }

  /** Waits for the query in flight, which can be older than the caller. */
  async #queryNext(store: number): Promise<number | undefined> {
    try {
      await this.#inFlight.get(store); // if that one fails, another would fail too
    } finally {
      this.#next.delete(store);
    }
    const query = this.#query(store);
    this.#inFlight.set(store, query);
    try {
      return await query;
    } finally {
      this.#inFlight.delete(store);
    }
  }

  async #query(store: number): Promise<number | undefined> {
    const [row] = await this.#servers.read(store, refreshSql, [store]);
    return row?.[0];
  }
}
