/**
 * The nodes of a Citus cluster, and which of them has a store. On other engines, there are none.
 */
import { isDeepStrictEqual } from 'node:util';
import { nameOf, type Address, type Host } from '../pool/address.ts';
import { isCitus } from './citus.ts';
import { sql, type Row, type Statement } from '../../sql/statement.ts';
import type { Connection } from '../pool/connection.ts';
import { WrongServer, settled } from '../errors.ts';
import { checkNodeSql, checkServer } from '../schema/check.ts';
import { Pool, type PoolOptions } from '../pool/pool.ts';
import { ShardMap, shardSql } from './shard-map.ts';
import { onShard } from './shard-statement.ts';

/** The `groupid` of the coordinator, which is the only node that can change the schema. */
const coordinatorNumber = 0;

type NodeRow = readonly [node: number, host: string, port: number];

const nodeSql = sql<NodeRow>`
  SELECT groupid, nodename, nodeport FROM pg_dist_node
  WHERE isactive AND hasmetadata AND noderole = 'primary' ORDER BY groupid`;
/** The name that the node itself has for its place: a former primary has an outdated one. */
const localNodeSql = sql<NodeRow>`
  SELECT groupid, nodename, nodeport FROM pg_dist_local_group JOIN pg_dist_node USING (groupid)
  WHERE noderole = 'primary'`;

/** Every node has the row. */
const identitySql = sql<readonly [cluster: string]>`
  SELECT cluster FROM plant_store.migrations WHERE id = 1`;

export class CitusNodes {
  readonly #address: Address;
  readonly #onFault: PoolOptions['onFault'];
  /** By number, the coordinator first. */
  #nodes = new Map<number, Pool>();
  /**
   * Undefined on other engines. Stale for 5 s after a move of a shard: nobody notices, unless the coordinator hangs
   * (docs/how-to/cluster.md).
   */
  #map: ShardMap | undefined;
  /** What all nodes have in the row of the migrations; undefined if there is none yet. */
  #identity: string | undefined;
  #isClosed = false;

  constructor(address: Address, onFault: PoolOptions['onFault']) {
    this.#address = address;
    this.#onFault = onFault;
  }

  get isCitus(): boolean {
    return this.#map !== undefined;
  }

  get isEmpty(): boolean {
    return this.#nodes.size === 0;
  }

  /** A node that works. */
  get available(): Pool | undefined {
    return this.#nodes.values().find(({ health }) => health.isAvailable);
  }

  get withStores(): readonly Pool[] {
    const nodes = [...this.#nodes].filter(([number]) => this.#map?.hasStores(number));
    return nodes.map(([, pool]) => pool);
  }

  get coordinator(): Pool | undefined {
    return this.#nodes.get(coordinatorNumber);
  }

  /** The node of a store; undefined if it is not known. */
  poolOf(store: number): Pool | undefined {
    const shard = this.#map?.shardOf(store);
    return shard && this.#nodes.get(shard.node);
  }

  /** The same read from the tables of the store's shard; undefined if they are not known. */
  onShard<R extends Row>(store: number, read: Statement<R>): Statement<R> | undefined {
    const shard = this.#map?.shardOf(store);
    return shard && onShard(read, shard);
  }

  /** Asks a server for the nodes and shards. Returns false on other engines. */
  async locateFrom(server: Pool): Promise<boolean> {
    const found = await server.check(async (connection) => {
      if (!(await isCitus(connection))) return undefined;
      const [nodes, shards] = await settled([
        connection.query(nodeSql, []),
        connection.query(shardSql, []),
      ]);
      const [[identity] = []] = shards.length === 0 ? [] : await connection.query(identitySql, []);
      return { nodes, shards, identity };
    });
    if (found === undefined || this.#isClosed) return false;
    this.#identity = found.identity;
    this.#map = new ShardMap(found.shards);
    this.#update(found.nodes);
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#nodes.values().map((pool) => pool.close()));
  }

  #update(rows: readonly NodeRow[]): void {
    const before = this.#nodes;
    this.#nodes = new Map();
    for (const [number, host, port] of rows) {
      const known = before.get(number);
      const isSame = known?.name === nameOf({ host, port });
      this.#nodes.set(number, isSame ? known : this.#connectTo(number, { host, port }));
    }
    for (const [number, pool] of before) if (this.#nodes.get(number) !== pool) void pool.close();
  }

  /** Connects only to this node: under its name in the cluster, or as one of the hosts of the address. */
  #connectTo(number: number, named: Host): Pool {
    // Before the schema has an identity, a name such as `localhost` could be a node of another cluster.
    const { hosts } = this.#address;
    const inOrder = this.#identity === undefined ? [...hosts, named] : [named, ...hosts];
    return new Pool(
      { ...this.#address, hosts: inOrder },
      {
        name: nameOf(named),
        onFault: this.#onFault,
        verify: (connection) => this.#checkIdentity(connection, [number, named.host, named.port]),
        check: (connection) => checkServer(connection, checkNodeSql),
      },
    );
  }

  async #checkIdentity(connection: Connection, expected: NodeRow): Promise<void> {
    const identity = this.#identity;
    const [node] = await connection.query(localNodeSql, []);
    const [[cluster] = []] = identity === undefined ? [] : await connection.query(identitySql, []);
    if (!isDeepStrictEqual(node, expected) || cluster !== identity)
      throw new WrongServer('the server is another node of the cluster, or of another cluster');
  }
}
