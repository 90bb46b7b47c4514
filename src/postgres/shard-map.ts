/**
 * Which node of a Citus cluster has a row. Citus divides the hashes of the distribution column into ranges, the shards
 * of a table. Every node can answer for every shard, so an outdated map costs a hop and never a wrong response.
 */
import { prepared } from './connection.ts';
import { hashBigint, hashText } from './hash.ts';

/** The tables by which others are placed, too (citus.ts). */
const tables = ['stores', 'unrouted_tokens'] as const;
type Table = (typeof tables)[number];

export type ShardRow = readonly [
  table: Table,
  firstHash: number,
  lastHash: number,
  node: number,
  hashOfOne: number,
];

/** Each shard, the number of its node (`groupid`), and the hash of the number 1, to compare with ours. */
export const shardSql = prepared<ShardRow>(
  'shards',
  `
    SELECT relname, shardminvalue::integer, shardmaxvalue::integer, min(groupid), worker_hash(1::bigint)
    FROM pg_dist_shard
    JOIN pg_dist_placement USING (shardid)
    JOIN pg_class ON pg_class.oid = logicalrelid
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'plant_store' AND relname IN (${tables.map((table) => `'${table}'`).join()})
    GROUP BY 1, 2, 3 ORDER BY 1, 2`,
);

/** A shard can be made for one store: then no number is likely to be found for its node. */
const maxProbedStores = 10_000;

type Shard = readonly [lastHash: number, node: number];

export class ShardMap {
  readonly #shards: ReadonlyMap<Table, readonly Shard[]>;

  /** The rows of `shardSql`. */
  constructor(rows: readonly ShardRow[]) {
    const isOurHash = rows.every((row) => row[4] === hashBigint(1));
    const usable = isOurHash ? rows : [];
    this.#shards = new Map(
      tables.map((table) => {
        const shards = usable.filter(([name]) => name === table);
        return [table, shards.map(([, , lastHash, node]) => [lastHash, node])];
      }),
    );
  }

  get isEmpty(): boolean {
    return this.#shards.get('stores')?.length === 0;
  }

  /** The node of everything in a store; undefined if it is not known. */
  nodeOfStore(store: number): number | undefined {
    return this.#nodeOf('stores', hashBigint(store));
  }

  /** Whether stores with these numbers are in one shard, which is always on one node. */
  areTogether(store: number, other: number): boolean {
    return (
      this.#shardOf('stores', hashBigint(store)) === this.#shardOf('stores', hashBigint(other))
    );
  }

  /** The node of the store of a token whose text does not name it. */
  nodeOfTokenId(id: string): number | undefined {
    return this.#nodeOf('unrouted_tokens', hashText(id));
  }

  /** Nodes that have stores, each with a number that a store on it can have. */
  *nodesOfStores(): Iterable<readonly [node: number, store: number]> {
    const missing = new Set(this.#shards.get('stores')?.map(([, node]) => node));
    for (let store = 1; missing.size > 0 && store <= maxProbedStores; store++) {
      const node = this.nodeOfStore(store);
      if (node !== undefined && missing.delete(node)) yield [node, store];
    }
  }

  #nodeOf(table: Table, hash: number): number | undefined {
    return this.#shardOf(table, hash)?.[1];
  }

  #shardOf(table: Table, hash: number): Shard | undefined {
    const shards = this.#shards.get(table) ?? [];
    let low = 0;
    for (let high = shards.length; low < high;) {
      const middle = (low + high) >>> 1;
      if ((shards[middle]?.[0] ?? hash) < hash) low = middle + 1;
      else high = middle;
    }
    return shards[low];
  }
}
