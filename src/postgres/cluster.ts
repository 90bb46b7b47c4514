/**
 * The servers of a database: one, or the nodes of a Citus cluster. Each statement about a store goes straight to the
 * node that has it. While the service cannot connect to that node, the hosts of the address pass the statement on.
 */
import { isDeepStrictEqual } from 'node:util';
import { Refusal } from '../refusal.ts';
import type { Address, Host } from './address.ts';
import { isCitus } from './citus.ts';
import { prepared, type Connection, type Row, type Statement } from './connection.ts';
import { CoordinatorUnavailable } from './errors.ts';
import { Hosts } from './hosts.ts';
import { checkNode, type NodeState } from './node-check.ts';
import { Pool } from './pool.ts';
import { settled } from './settled.ts';
import { ShardMap, shardSql } from './shard-map.ts';
import { isElsewhere, onShard } from './shard-reads.ts';
import { withTimeout } from './timeout.ts';

/** How often to check which nodes there are and what they have. */
const locateIntervalMs = 5_000;
/** How long to wait for nodes that do not respond, the first time. */
const reachTimeoutMs = 500;
/** How long a host has to pass a statement on, before the next one is tried. */
const passOnTimeoutMs = 1_500;
/** The `groupid` of the coordinator, which is the only node that can change the schema. */
const coordinatorNumber = 0;
/** The number of a store that need not exist, where one server has all stores. */
const anyStore = 0;

type NodeRow = readonly [node: number, host: string, port: number];

const nodeSql = prepared<NodeRow>(
  'nodes',
  `
    SELECT groupid, nodename, nodeport FROM pg_dist_node
    WHERE isactive AND hasmetadata AND noderole = 'primary' ORDER BY groupid`,
);
/** How the node itself names its place: a former primary has an old name. */
const localNodeSql = prepared<NodeRow>(
  'local_node',
  `
    SELECT groupid, nodename, nodeport FROM pg_dist_local_group JOIN pg_dist_node USING (groupid)
    WHERE noderole = 'primary'`,
);

/** Every node has the row. */
const identitySql = prepared<readonly [cluster: string]>(
  'cluster_identity',
  'SELECT cluster FROM plant_store.migrations WHERE id = 1',
);

export interface ClusterEvents {
  /** A connection was lost: the next server can have other data. */
  onLost: (pool: Pool) => void;
  /** A server is unavailable, or available again if `fault` is undefined. */
  onFault: (server: string, fault: unknown) => void;
}

interface Node {
  number: number;
  /** How the cluster names it. */
  named: Host;
  pool: Pool;
  /** Whether the pool connects to the node itself, not to others that pass statements on. */
  isDirect: boolean;
  /** A number that a store on the node can have; undefined if it has no stores. */
  store: number | undefined;
}

export class Cluster {
  readonly #address: Address;
  readonly #events: ClusterEvents;
  /** The hosts of the address: the only pool if there is one server. */
  readonly #seed: Pool;
  /** By number, the coordinator first. Empty if there is one server. */
  #nodes = new Map<number, Node>();
  #map: ShardMap | undefined;
  /** What all nodes have in the row of the migrations; undefined if there is none yet. */
  #identity: string | undefined;
  /** Whether the engine is known not to be Citus. */
  #isOneServer = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #stop = new AbortController();

  constructor(address: Address, events: ClusterEvents) {
    this.#address = address;
    this.#events = events;
    const hosts = new Hosts(address);
    this.#seed = new Pool(hosts, {
      name: hosts.name,
      onLost: () => events.onLost(this.#seed),
      onFault: (fault) => events.onFault(hosts.name, fault),
      readTable: (connection) => checkNode(connection, anyStore),
    });
  }

  /** Where everything about a store is. The keys of names are numbers of stores, too (names.ts). */
  ofStore(store: number): Pool {
    const number = this.#map?.shardOfStore(store)?.node;
    return (number === undefined ? undefined : this.#nodes.get(number)?.pool) ?? this.any;
  }

  /** Reads rows of a store, if possible from the tables of its shard. Rejects like `Pool.read`. */
  async read<R extends Row>(
    store: number,
    statement: Statement<R>,
    values: readonly unknown[],
    turn = String(store),
  ): Promise<R[]> {
    const server = this.ofStore(store);
    const shard = this.#map?.shardOfStore(store);
    const ofShard =
      shard !== undefined && this.#nodes.get(shard.node)?.isDirect === true
        ? onShard(statement, shard)
        : undefined;
    if (ofShard === undefined) return server.read(statement, values, { turn });
    try {
      return await server.read(ofShard, values, { turn, isFinal: isElsewhere });
    } catch (error) {
      if (!isElsewhere(error)) throw error;
      return server.read(statement, values, { turn }); // the map is outdated
    }
  }

  /** Whether two stores are in one shard, which is always on one node. */
  areTogether(store: number, other: number): boolean {
    return this.#map === undefined || this.#map.areTogether(store, other);
  }

  /** Whether the tables are distributed over nodes. */
  get isCitus(): boolean {
    return this.#map !== undefined;
  }

  /** Whether a transaction of several stores of a server needs that server only. */
  isDirect(pool: Pool): boolean {
    if (pool === this.#seed) return this.#isOneServer;
    return this.#nodes.values().some((node) => node.pool === pool && node.isDirect);
  }

  /** A server that works: for what every node has, and for statements about all stores. */
  get any(): Pool {
    for (const { pool } of this.#nodes.values()) if (pool.isAvailable) return pool;
    return this.#seed;
  }

  /** The server that can change the schema. Throws CoordinatorUnavailable if it cannot be reached. */
  async reachCoordinator(): Promise<Pool> {
    const node = this.#nodes.get(coordinatorNumber);
    if (node === undefined) return this.any;
    await this.#reach(node);
    if (!node.isDirect) throw new CoordinatorUnavailable(nameOf(node));
    return node.pool;
  }

  /** All that are not closed. */
  get pools(): readonly Pool[] {
    return [this.#seed, ...this.#nodes.values().map(({ pool }) => pool)];
  }

  /** The servers that have stores. */
  get withStores(): readonly Pool[] {
    const nodes = [...this.#nodes.values()].filter(({ store }) => store !== undefined);
    return nodes.length > 0 ? nodes.map(({ pool }) => pool) : [this.#seed];
  }

  /** Checks a server. One whose commits are not durable is not available until they are. */
  async check(pool: Pool): Promise<NodeState> {
    const node = [...this.#nodes.values()].find((each) => each.pool === pool);
    const store = pool === this.#seed ? anyStore : node?.store;
    return pool
      .check((connection) => checkNode(connection, store))
      .catch((error: unknown) => {
        if (node === undefined || !(error instanceof Refusal)) throw error;
        throw new Refusal(`${nameOf(node)}: ${error.message}`, { cause: error });
      });
  }

  /** Whether it is known where stores are. */
  get isLocated(): boolean {
    return this.#map?.isEmpty === false && this.#identity !== undefined;
  }

  /** Finds the nodes of a Citus cluster and what they have, and repeats that. Returns false on other engines. */
  async locate(): Promise<boolean> {
    const isFirst = this.#nodes.size === 0;
    const isCluster = await this.#locateFrom(this.any);
    // The first host of the address can be a failed worker that was started again, with the map from before its failure.
    const coordinator = isFirst ? this.#nodes.get(coordinatorNumber) : undefined;
    if (coordinator !== undefined) {
      await this.#reach(coordinator);
      if (coordinator.isDirect) await this.#locateFrom(coordinator.pool);
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
    this.#isOneServer = found === undefined;
    if (found === undefined || this.#stop.signal.aborted) return false;
    const { nodes, shards, identity } = found;
    this.#identity = identity;
    const map = new ShardMap(shards);
    const isFirst = this.#nodes.size === 0 && nodes.length > 0;
    await this.#update(nodes, map);
    this.#map = map;
    if (isFirst) this.#seed.disconnect();
    this.#timer ??= setInterval(() => void this.locate().catch(() => {}), locateIntervalMs).unref();
    return true;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    clearInterval(this.#timer);
    await Promise.all(this.pools.map((pool) => pool.close()));
  }

  async #update(rows: readonly NodeRow[], map: ShardMap): Promise<void> {
    const before = this.#nodes;
    const stores = new Map(map.nodesOfStores());
    this.#nodes = new Map(
      rows.map(([number, host, port]) => {
        const node = before.get(number) ?? this.#addNode(number, { host, port });
        node.store = stores.get(number);
        if (node.named.host !== host || node.named.port !== port) {
          node.named = { host, port };
          node.isDirect = false;
          node.pool.moveTo(new Hosts(this.#address));
        }
        return [number, node];
      }),
    );
    for (const [number, { pool }] of before) if (!this.#nodes.has(number)) void pool.close();
    for (const node of this.#nodes.values()) void this.#passOn(node);
    const reached = Promise.all([...this.#nodes.values()].map((node) => this.#reach(node)));
    await withTimeout(reached, () => {}, reachTimeoutMs).catch(() => {}); // continues
  }

  #addNode(number: number, named: Host): Node {
    const verify = async (connection: Connection) => {
      if (node.isDirect || node.store === undefined) return;
      await this.#checkPassing(connection, node.store);
    };
    const pool = new Pool(new Hosts(this.#address), {
      name: nameOf({ named }),
      onLost: () => this.#events.onLost(node.pool),
      onFault: (fault) => this.#events.onFault(nameOf(node), fault),
      verify,
      readTable: (connection) => checkNode(connection, node.store),
    });
    const node: Node = { number, named, pool, isDirect: false, store: undefined };
    return node;
  }

  /** If the service cannot connect to the node itself any more, but others can, they pass statements on. */
  async #passOn(node: Node): Promise<void> {
    const { named, pool, store } = node;
    const isCutOff = () => node.isDirect && node.named === named && !pool.isAvailable;
    if (store === undefined || !isCutOff()) return;
    const hosts = new Hosts(this.#address);
    const verify = (connection: Connection) => this.#checkPassing(connection, store);
    const canPass = await this.#canOpen(hosts, verify);
    if (!canPass || !isCutOff()) return;
    node.isDirect = false;
    pool.moveTo(hosts);
  }

  /** Checks the node that has this store through another one. A former primary could ask another one. */
  async #checkPassing(connection: Connection, store: number): Promise<void> {
    const check = async () => {
      const [[[number, host, port] = []]] = await settled([
        connection.query(localNodeSql, []),
        checkNode(connection, store),
      ]);
      const named = number === undefined ? undefined : this.#nodes.get(number)?.named;
      if (!isDeepStrictEqual(named, { host, port })) throw new OtherNode();
    };
    await withTimeout(check(), undefined, passOnTimeoutMs);
  }

  /** Connects to the node itself, under the name that the cluster has for it, or as one of the address. */
  async #reach(node: Node): Promise<void> {
    const { named, number } = node;
    const identity = this.#identity;
    // Before the schema has one, a name such as `localhost` could be a node of another cluster.
    if (node.isDirect || (identity === undefined && number !== coordinatorNumber)) return;
    const isOther = ({ host, port }: Host) => host !== named.host || port !== named.port;
    const inOrder =
      identity === undefined
        ? [...this.#address.hosts, named]
        : [named, ...this.#address.hosts.filter(isOther)];
    for (const host of inOrder) {
      if (this.#stop.signal.aborted) return;
      const hosts = new Hosts({ ...this.#address, hosts: [host] });
      const verify = (connection: Connection) => this.#checkIdentity(connection, node, identity);
      if (!(await this.#canOpen(hosts, verify))) continue;
      if (node.named !== named || node.isDirect) return; // meanwhile
      node.isDirect = true;
      node.pool.moveTo(hosts);
      return;
    }
  }

  async #checkIdentity(
    connection: Connection,
    { number, named }: Node,
    identity: string | undefined,
  ): Promise<void> {
    const [node] = await connection.query(localNodeSql, []);
    const [[cluster] = []] = identity === undefined ? [] : await connection.query(identitySql, []);
    const expected = [number, named.host, named.port];
    if (!isDeepStrictEqual(node, expected) || cluster !== identity) throw new OtherNode();
  }

  async #canOpen(
    hosts: Hosts,
    verify: (connection: Connection) => Promise<void>,
  ): Promise<boolean> {
    try {
      const connection = await hosts.open({ stop: this.#stop.signal, verify });
      void connection.close();
      return true;
    } catch {
      return false;
    }
  }
}

class OtherNode extends Error {}

function nameOf({ named: { host, port } }: Pick<Node, 'named'>): string {
  return `${host}:${port}`;
}
