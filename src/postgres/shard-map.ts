/**
 * Which node of a Citus cluster has a row. Citus divides the hashes of the distribution column into ranges, the shards
 * of a table. Every node can answer for every shard, so an outdated map costs a hop and never a wrong response.
 */
import { prepared } from './connection.ts';
import { hashBigint, hashText } from './hash.ts';

/** The tables that are divided in the same way as `stores`, as far as requests read them (citus.ts). */
export const tablesOfStore = ['stores', 'users', 'store_tokens', 'shares', 'plants'] as const;
/** The tables by which others are placed, too. */
const placing = ['stores', 'unrouted_tokens'] as const;
type Placing = (typeof placing)[number];
type TableOfStore = (typeof tablesOfStore)[number];

export type ShardRow = readonly [
  table: Placing | TableOfStore,
  firstHash: number,
  lastHash: number,
  node: number,
  hashOfOne: number,
  id: number,
];

const tables = [...new Set([...placing, ...tablesOfStore])].map((table) => `'${table}'`);

/** Each shard, the number of its node (`groupid`), and the hash of the number 1, to compare with ours. */
export const shardSql = prepared<ShardRow>(
  'shards',
  `
    SELECT relname, shardminvalue::integer, shardmaxvalue::integer, min(groupid), worker_hash(1::bigint),
           min(shardid)
    FROM pg_dist_shard
    JOIN pg_dist_placement USING (shardid)
    JOIN pg_class ON pg_class.oid = logicalrelid
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'plant_store' AND relname IN (${tables.join()})
    GROUP BY 1, 2, 3 ORDER BY 1, 2`,
);

/** A shard can be made for one store: then no number is likely to be found for its node. */
const maxProbedStores = 10_000;

export interface Shard {
  firstHash: number;
  lastHash: number;
  node: number;
  /** The shards of all tables with the same range, by table. Only for `stores`. */
  ids: ReadonlyMap<string, number>;
}

export class ShardMap {
  readonly #shards: ReadonlyMap<Placing, readonly Shard[]>;

  /** The rows of `shardSql`. */
  constructor(rows: readonly ShardRow[]) {
    const isOurHash = rows.every((row) => row[4] === hashBigint(1));
    const usable = isOurHash ? rows : [];
    this.#shards = new Map(
      placing.map((table) => {
        const ranges = usable.filter(([name]) => name === table);
        const shards = ranges.map(([, firstHash, lastHash, node]) => {
          const same = usable.filter(
            ([name, first, last]) =>
              name !== placing[1] && first === firstHash && last === lastHash,
          );
          const ids = new Map(same.map(([name, , , , , id]) => [name, id]));
          return { firstHash, lastHash, node, ids };
        });
        return [table, shards];
      }),
    );
  }

  get isEmpty(): boolean {
    return this.#shards.get('stores')?.length === 0;
  }

  /** Where everything in a store is; undefined if that is not known. */
  shardOfStore(store: number): Shard | undefined {
    return this.#shardOf('stores', hashBigint(store));
  }

  /** Whether stores with these numbers are in one shard, which is always on one node. */
  areTogether(store: number, other: number): boolean {
    return this.shardOfStore(store) === this.shardOfStore(other);
  }

  /** The node of the store of a token whose text does not name it. */
  nodeOfTokenId(id: string): number | undefined {
    return this.#shardOf('unrouted_tokens', hashText(id))?.node;
  }

  /** Nodes that have stores, each with a number that a store on it can have. */
  *nodesOfStores(): Iterable<readonly [node: number, store: number]> {
    const missing = new Set(this.#shards.get('stores')?.map(({ node }) => node));
    for (let store = 1; missing.size > 0 && store <= maxProbedStores; store++) {
      const node = this.shardOfStore(store)?.node;
      if (node !== undefined && missing.delete(node)) yield [node, store];
    }
  }

  #shardOf(table: Placing, hash: number): Shard | undefined {
    const shards = this.#shards.get(table) ?? [];
    let low = 0;
    for (let high = shards.length; low < high;) {
      const middle = (low + high) >>> 1;
      if ((shards[middle]?.lastHash ?? hash) < hash) low = middle + 1;
      else high = middle;
    }
    return shards[low];
  }
}
