/**
 * The directory of tokens whose text does not name their store. Older versions made them (decision 37).
 */
import type { Row } from '../archive.ts';
import { Cache } from '../cache.ts';
import type { Cluster } from './cluster.ts';
import { prepared } from './connection.ts';
import type { BoundStatement, Pool } from './pool.ts';

export const unroutedSql = {
  find: prepared<readonly [store: number]>(
    'find_unrouted_token',
    'SELECT store FROM plant_store.unrouted_tokens WHERE id = $1 ORDER BY store',
  ),
};

/** Maximum number of cached ids. */
const maxCached = 10_000;

export class UnroutedTokens {
  readonly #cluster: Cluster;
  /** A token never changes its store. With the cache, a known token needs one server, like any other. */
  readonly #cache = new Cache<readonly number[]>(maxCached);

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** The server to ask first about the token with this id. */
  serverOf(id: string): Pool {
    const [store] = this.#cache.get(id) ?? [];
    return store === undefined ? this.#cluster.ofTokenId(id) : this.#cluster.ofStore(store);
  }

  /** The token was not where the cache says. */
  forget(id: string): void {
    this.#cache.delete(id);
  }

  /** The stores that can have a token with this id: one, unless two tokens share the id. */
  async findStores(id: string): Promise<readonly number[]> {
    const cached = this.#cache.get(id);
    if (cached !== undefined) return cached;
    const rows = await this.#cluster.ofTokenId(id).read(unroutedSql.find, [id]);
    const stores = rows.map(([store]) => store);
    if (stores.length > 0) this.#cache.set(id, stores);
    return stores;
  }
}

/** Adds rows of `tokens` (archive.ts) to the directory. */
export function addUnrouted(rows: readonly Row[]): BoundStatement {
  const unrouted = rows.filter(([, , , format]) => format === 1);
  return [
    {
      name: 'add_unrouted_tokens',
      text: `
        INSERT INTO plant_store.unrouted_tokens (id, store)
        SELECT encode(substr(hash, 1, 8), 'hex'), store
        FROM unnest($1::bytea[], $2::bigint[]) AS new (hash, store)
        ON CONFLICT DO NOTHING`,
    },
    [unrouted.map(([, hash]) => hash), unrouted.map(([store]) => store)],
  ];
}
