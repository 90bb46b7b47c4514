/**
 * The servers of a database: one, or the nodes of a Citus cluster. Each statement about a store goes straight to the
 * node that has it.
 */
import { isDeepStrictEqual } from 'node:util';
import { Refusal } from '../../refusal.ts';
import type { Schema } from '../../shared/migrations.ts';
import type { Address, Host } from '../pool/address.ts';
import { isCitus } from './citus.ts';
import { sql, type Connection, type Row, type Statement } from '../pool/connection.ts';
import { Unavailable, WrongServer, settled } from '../errors.ts';
import { Hosts } from '../pool/hosts.ts';
import { checkNode } from '../schema/node-check.ts';
import { Pool } from '../pool/pool.ts';
import { ShardMap, shardSql, type Shard } from './shard-map.ts';
import { isElsewhere, onShard } from './shard-statement.ts';

/** How often to check which nodes and shards there are. */
const locateIntervalMs = 5_000;
/** The `groupid` of the coordinator, which is the only node that can change the schema. */
const coordinatorNumber = 0;
/** The number of any store, even a missing one, for a server that has all stores. */
const anyStore = 0;

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

export interface ClusterEvents {
  /** Resolves when requests can use the server. Rejects with a Problem. */
  whenReady?: ((server: Pool) => Promise<void>) | undefined;
  /** A server is unavailable, or available again if `fault` is undefined. */
  onFault?: ((server: string, fault: unknown) => void) | undefined;
  /** Another primary than the one in use accepts writes, or none does any more if `rival` is undefined. */
  onRival?: ((rival: string | undefined) => void) | undefined;
}

interface Node {
  pool: Pool;
  /** A number that a store on the node can have; undefined if it has no stores. */
  store: number | undefined;
}

export class Cluster {
  readonly #address: Address;
  readonly #events: ClusterEvents;
  readonly #hosts: Hosts;
  /** The hosts of the address: the only pool if there is one server. */
  readonly #seed: Pool;
  /** By number, the coordinator first. Empty if there is one server. */
  #nodes = new Map<number, Node>();
  /**
   * Undefined if there is one server. Stale for 5 s after a move of a shard: nobody notices, unless the coordinator hangs
   * (docs/how-to/cluster.md).
   */
  #map: ShardMap | undefined;
  /** What all nodes have in the row of the migrations; undefined if there is none yet. */
  #identity: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(address: Address, events: ClusterEvents = {}) {
    this.#address = address;
    this.#events = events;
    const name = address.hosts.map(nameOf).join();
    this.#hosts = new Hosts(address, events.onRival);
    this.#seed = new Pool(this.#hosts, {
      name,
      onFault: (fault) => events.onFault?.(name, fault),
      check: (connection) => checkNode(connection, anyStore),
    });
  }

  /** The server of a store, once requests can use it. Keys of names count as numbers of stores (names.ts). */
  async ofStore(store: number): Promise<Pool> {
    await this.#events.whenReady?.(this.placeOf(store));
    return this.placeOf(store); // again, because opening the database finds the nodes
  }

  /** A server for what every node has, and for statements about all stores, once requests can use it. */
  async anyServer(): Promise<Pool> {
    await this.#events.whenReady?.(this.any);
    return this.any;
  }

  /** Reads rows of a store, if possible from the tables of its shard. Rejects like `Pool.read`. */
  async read<R extends Row>(
    store: number,
    statement: Statement<R>,
    values: readonly unknown[],
    turn = String(store),
  ): Promise<R[]> {
    const server = await this.ofStore(store);
    const shard = this.shardOf(store);
    const ofShard = shard && onShard(statement, shard);
    if (ofShard === undefined) return server.read(statement, values, turn);
    try {
      return await server.read(ofShard, values, turn, isElsewhere);
    } catch (error) {
      if (!isElsewhere(error)) throw error;
      return server.read(statement, values, turn); // the map is outdated
    }
  }

  /** Like `ofStore`, even if requests cannot use the server now. */
  placeOf(store: number): Pool {
    const shard = this.shardOf(store);
    return (shard && this.#nodes.get(shard.node)?.pool) ?? this.any;
  }

  /** A server that works. */
  get any(): Pool {
    for (const { pool } of this.#nodes.values()) if (pool.breaker.isAvailable) return pool;
    return this.#seed;
  }

  /** The shard of a store, which is always on one node; undefined if it is not known, or on other engines. */
  shardOf(store: number): Shard | undefined {
    return this.#map?.shardOf(store);
  }

  /** Whether another primary than the one in use accepts writes. */
  get hasRival(): boolean {
    return this.#hosts.rival !== undefined;
  }

  get isCitus(): boolean {
    return this.#map !== undefined;
  }

  /** Whether a transaction on several stores of this server involves no other server. */
  isDirect(server: Pool): boolean {
    return server !== this.#seed || !this.isCitus;
  }

  /** The server that can change the schema. Rejects if it cannot be reached. */
  async reachCoordinator(): Promise<Pool> {
    const node = this.#nodes.get(coordinatorNumber);
    if (node === undefined) return this.any;
    await node.pool
      .withConnection(async () => {})
      .catch(() => {
        throw new Unavailable(
          `the coordinator of the cluster, ${node.pool.name}, does not respond, and only it can change the schema`,
        );
      });
    return node.pool;
  }

  /** All pools that are not closed. */
  get pools(): readonly Pool[] {
    return [this.#seed, ...this.#nodes.values().map(({ pool }) => pool)];
  }

  /** The servers that have stores. */
  get withStores(): readonly Pool[] {
    const nodes = [...this.#nodes.values()].filter(({ store }) => store !== undefined);
    return nodes.length > 0 ? nodes.map(({ pool }) => pool) : [this.#seed];
  }

  /** Checks a server, which is unavailable while its commits are not durable. */
  async check(pool: Pool): Promise<Schema> {
    return pool.checkNode().catch((error: unknown) => {
      if (pool === this.#seed || !(error instanceof Refusal)) throw error;
      throw new Refusal(`${pool.name}: ${error.message}`, { cause: error });
    });
  }

  /** Whether it is known where stores are. */
  get isLocated(): boolean {
    return this.#map?.isEmpty === false && this.#identity !== undefined;
  }

  /** Finds the nodes and shards of a Citus cluster, now and regularly. Returns false on other engines. */
  async locate(): Promise<boolean> {
    const server = this.any;
    const isCluster = await this.#locateFrom(server);
    // The first host of the address can be a failed worker that was started again, with the map from before its failure.
    const coordinator = server === this.#seed ? this.#nodes.get(coordinatorNumber) : undefined;
    if (coordinator !== undefined) {
      await this.#locateFrom(coordinator.pool).catch(() => {});
    }
    return isCluster;
  }

  async #locateFrom(server: Pool): Promise<boolean> {
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
    const { nodes, shards, identity } = found;
    this.#identity = identity;
    this.#map = new ShardMap(shards);
    if (this.#nodes.size === 0 && nodes.length > 0) this.#seed.disconnect();
    this.#update(nodes, new Map(this.#map.nodesOfStores()));
    this.#timer ??= setInterval(() => void this.locate().catch(() => {}), locateIntervalMs).unref();
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await Promise.all(this.pools.map((pool) => pool.close()));
  }

  #update(rows: readonly NodeRow[], stores: ReadonlyMap<number, number>): void {
    const before = this.#nodes;
    this.#nodes = new Map();
    for (const [number, host, port] of rows) {
      const known = before.get(number);
      const isSame = known?.pool.name === nameOf({ host, port });
      const pool = isSame ? known.pool : this.#poolOf(number, { host, port });
      this.#nodes.set(number, { pool, store: stores.get(number) });
    }
    const used = new Set(this.pools);
    for (const { pool } of before.values()) if (!used.has(pool)) void pool.close();
  }

  /** Connects only to this node: under its name in the cluster, or as one of the hosts of the address. */
  #poolOf(number: number, named: Host): Pool {
    // Before the schema has an identity, a name such as `localhost` could be a node of another cluster.
    const { hosts } = this.#address;
    const inOrder = this.#identity === undefined ? [...hosts, named] : [named, ...hosts];
    const pool = new Pool(new Hosts({ ...this.#address, hosts: inOrder }), {
      name: nameOf(named),
      onFault: (fault) => this.#events.onFault?.(pool.name, fault),
      verify: (connection) => this.#checkIdentity(connection, [number, named.host, named.port]),
      check: (connection) => checkNode(connection, this.#nodes.get(number)?.store),
    });
    return pool;
  }

  async #checkIdentity(connection: Connection, expected: NodeRow): Promise<void> {
    const identity = this.#identity;
    const [node] = await connection.query(localNodeSql, []);
    const [[cluster] = []] = identity === undefined ? [] : await connection.query(identitySql, []);
    if (!isDeepStrictEqual(node, expected) || cluster !== identity)
      throw new WrongServer('the server is another node of the cluster, or of another cluster');
  }
}

function nameOf({ host, port }: Host): string {
  return `${host}:${port}`;
}
