/**
 * Which node of a Citus cluster has a row. Citus divides the hashes of the distribution column into ranges, the shards
 * of a table. Every node can answer for every shard, so a request with an outdated map costs a hop.
 */
import { tablesOfStore } from './citus.ts';
import { sql } from '../../sql/statement.ts';
import { hashBigint } from './hash.ts';

export type ShardRow = readonly [
  table: (typeof tablesOfStore)[number],
  firstHash: number,
  lastHash: number,
  node: number,
  hashOfOne: number,
  id: number,
];

/** Each shard, the number of its node (`groupid`), and the hash of the number 1, to compare with ours. */
export const shardSql = sql<ShardRow>`
  SELECT relname, shardminvalue::integer, shardmaxvalue::integer, min(groupid), worker_hash(1::bigint),
         min(shardid)
  FROM pg_dist_shard
  JOIN pg_dist_placement USING (shardid)
  JOIN pg_class ON pg_class.oid = logicalrelid
  JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE nspname = 'plant_store' AND relname IN (${tablesOfStore.map((name) => `'${name}'`).join()})
  GROUP BY 1, 2, 3 ORDER BY 1, 2`;

/** A range of hashes. */
export interface Shard {
  firstHash: number;
  lastHash: number;
  node: number;
  /** The shards of all tables with this range, by table. */
  ids: ReadonlyMap<string, number>;
}

export class ShardMap {
  /** In ascending order of their hashes. */
  readonly #shards: readonly Shard[];

  /** The rows of `shardSql`. */
  constructor(rows: readonly ShardRow[]) {
    const isOurHash = rows.every((row) => row[4] === hashBigint(1));
    const usable = isOurHash ? rows : [];
    this.#shards = usable
      .filter(([table]) => table === 'stores')
      .map(([, firstHash, lastHash, node]) => {
        const same = usable.filter(([, first, last]) => first === firstHash && last === lastHash);
        const ids = new Map(same.map(([table, , , , , id]) => [table, id]));
        return { firstHash, lastHash, node, ids };
      });
  }

  /** The shard of a store; undefined if it is not known. */
  shardOf(store: number): Shard | undefined {
    const hash = hashBigint(store);
    return this.#shards.find(({ lastHash }) => hash <= lastHash);
  }

  /** Whether the node has shards. */
  hasStores(node: number): boolean {
    return this.#shards.some((shard) => shard.node === node);
  }
}
