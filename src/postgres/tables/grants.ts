/**
 * Who is calling, on PostgreSQL: read in full only if the known grant is not current. Each request first checks the version
 * of the grants of its store, which is how a revoked token or a changed role is noticed.
 */
import { randomInt } from 'node:crypto';
import { userKey } from '../../access/access.ts';
import type { IdentityStorage } from '../../access/identity-storage.ts';
import { findGrant, findUserGrant, grantOf } from '../../sql/grants.ts';
import { sql } from '../../sql/statement.ts';
import type { Engine } from '../../sql/write.ts';
import { problemOf } from '../errors.ts';
import { withTimeout } from '../pool/timeout.ts';
import type { Servers } from '../servers.ts';

/** The turn of all tokens that are new to this process: anybody can make up any number of them. */
const newTokens = 'new tokens';

/** Maximum age of a known grant: after changes by hand that set no new version, whoever made them notices. */
const maxAgeMs = 10_000;

export const refreshSql = sql<readonly [grants: number]>`
  SELECT grants FROM plant_store.stores WHERE store = $1`;

/** Never used before, in any database: grants with the same version are the same, also after a restore or a failover. */
export function newGrantsVersion(): number {
  return randomInt(2 ** 48 - 1); // its largest range
}

export function openGrants(servers: Servers, engine: Engine): IdentityStorage['identify'] {
  /** By store: the queries in flight for its version, and those that follow them. */
  const inFlight = new Map<number, Promise<number | undefined>>();
  const following = new Map<number, Promise<number | undefined>>();

  /**
   * The version of the store's grants as of this call or later; undefined if the store does not exist. One query serves
   * all calls before it was sent. Compare versions for equality only, because a restored database can have an older one.
   */
  function currentVersion(store: number): Promise<number | undefined> {
    const next = following.get(store) ?? queryNext(store);
    following.set(store, next);
    return next;
  }

  /** Waits for the query in flight, which can be older than the caller. */
  async function queryNext(store: number): Promise<number | undefined> {
    try {
      await inFlight.get(store); // if that one fails, another would fail too
    } finally {
      following.delete(store);
    }
    const version = servers.read(store, refreshSql, [store]).then(([row]) => row?.[0]);
    inFlight.set(store, version);
    try {
      return await version;
    } finally {
      inFlight.delete(store);
    }
  }

  const identify: IdentityStorage['identify'] = async (credential, known, onWait) => {
    if (known !== undefined && performance.now() < known.readAtMs + maxAgeMs) {
      const current = currentVersion(known.caller.store);
      onWait?.();
      if ((await current) === known.caller.identified[0]) return known;
    }
    if (credential.claims !== undefined) return findUserGrant(engine, credential);
    const { store } = credential;
    const turn = known === undefined ? newTokens : userKey(known.caller);
    const rows = await servers.read(store, ...findGrant(store, credential), turn);
    return grantOf(store, credential, rows);
  };

  /** Limits the time of all statements together, including queries that others have started. */
  return async (...args) => {
    try {
      return await withTimeout(identify(...args));
    } catch (error) {
      throw problemOf(error);
    }
  };
}
