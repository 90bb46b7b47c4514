/**
 * Which node of a Citus cluster has a row. Citus divides the hashes of the distribution column into ranges, the shards
 * of a table. Every node can answer for every shard, so a request with an outdated map costs a hop.
 */
import { tablesOfStore } from './citus.ts';
import { sql } from '../../sql/statement.ts';

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

const initial = (0x9e3779b9 + 3_923_095 + 4) | 0;
const word = 2 ** 32;

/**
 * The hash by which Citus distributes rows: that of PostgreSQL for hash indexes (`hash_bytes_uint32` in
 * src/common/hashfn.c), after the public lookup3 of Bob Jenkins. A signed 32-bit number; `value` is a safe integer from 0.
 */
export function hashBigint(value: number): number {
  let a = initial + (value ^ Math.floor(value / word));
  let b = initial;
  let c = initial;
  c = (c ^ b) - rotate(b, 14);
  a = (a ^ c) - rotate(c, 11);
  b = (b ^ a) - rotate(a, 25);
  c = (c ^ b) - rotate(b, 16);
  a = (a ^ c) - rotate(c, 4);
  b = (b ^ a) - rotate(a, 14);
  c = (c ^ b) - rotate(b, 24);
  return c | 0;
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
