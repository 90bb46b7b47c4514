/**
 * The servers of a database: one, or the nodes of a Citus cluster. Each statement about a store goes straight to the
 * server that has it.
 */
import { nameOf, type Address } from './pool/address.ts';
import { distribute } from './citus/citus.ts';
import { CitusNodes } from './citus/nodes.ts';
import { isElsewhere } from './citus/shard-statement.ts';
import type { Row, Statement } from '../sql/statement.ts';
import { Unavailable } from './errors.ts';
import { checkServer, checkServerSql } from './schema/check.ts';
import { Readiness, type ReadinessOptions } from './schema/readiness.ts';
import { Pool } from './pool/pool.ts';

/** How often to check which nodes and shards there are. */
const locateIntervalMs = 5_000;

export interface ServersOptions extends ReadinessOptions {
  /** A server is unavailable, or available again if `fault` is undefined. */
  onFault?: ((server: string, fault: unknown) => void) | undefined;
  /** Another primary than the one in use accepts writes, or none does any more if `rival` is undefined. */
  onRival?: ((rival: string | undefined) => void) | undefined;
}

export class Servers {
  /** The hosts of the address: the only pool if there is one server. */
  readonly #seed: Pool;
  readonly #nodes: CitusNodes;
  /** Whether requests can use them. */
  readonly readiness: Readiness;
  #timer: NodeJS.Timeout | undefined;

  constructor(address: Address, { onFault, onRival, ...options }: ServersOptions) {
    this.#seed = new Pool(address, {
      name: address.hosts.map(nameOf).join(),
      onFault,
      onRival,
      check: (connection) => checkServer(connection, checkServerSql),
    });
    this.#nodes = new CitusNodes(address, onFault);
    this.readiness = new Readiness(this, options);
  }

  /**
   * The server of a store, once requests can use it. Keys of names count as numbers of stores (names.ts). Without a store,
   * a server for what every node has, and for statements about all stores.
   */
  async ofStore(store: number | undefined): Promise<Pool> {
    await this.readiness.whenReady(this.placeOf(store));
    return this.placeOf(store); // again, because opening the database finds the nodes
  }

  /** Reads rows of a store, if possible from the tables of its shard. Rejects like `Pool.read`. */
  async read<R extends Row>(
    store: number,
    statement: Statement<R>,
    values: readonly unknown[],
    turn = String(store),
  ): Promise<R[]> {
    const server = await this.ofStore(store);
    const ofShard = this.#nodes.onShard(store, statement);
    if (ofShard === undefined) return server.read(statement, values, turn);
    try {
      return await server.read(ofShard, values, turn, isElsewhere);
    } catch (error) {
      if (!isElsewhere(error)) throw error;
      return server.read(statement, values, turn); // the map is outdated
    }
  }

  /** Like `ofStore`, even if requests cannot use the server now. */
  placeOf(store: number | undefined): Pool {
    return (store === undefined ? undefined : this.#nodes.poolOf(store)) ?? this.any;
  }

  /** A server that works. */
  get any(): Pool {
    return this.#nodes.available ?? this.#seed;
  }

  /** Whether another primary than the one in use accepts writes. */
  get hasRival(): boolean {
    return this.#seed.hosts.rival !== undefined;
  }

  /** Whether a transaction on several stores of this server involves no other server. */
  isDirect(server: Pool): boolean {
    return server !== this.#seed || !this.#nodes.isCitus;
  }

  /** The servers that have stores. */
  get withStores(): readonly Pool[] {
    const { withStores } = this.#nodes;
    return withStores.length > 0 ? withStores : [this.#seed];
  }

  /** The server that can change the schema. Rejects if it cannot be reached. */
  async forSchema(): Promise<Pool> {
    const { coordinator } = this.#nodes;
    if (coordinator === undefined) return this.any;
    await coordinator
      .withConnection(async () => {})
      .catch(() => {
        throw new Unavailable(
          `the coordinator of the cluster, ${coordinator.name}, does not respond, and only it can change the schema`,
        );
      });
    return coordinator;
  }

  /** Distributes existing tables over the nodes of a cluster, however long it takes. */
  async distribute(): Promise<void> {
    await (await this.forSchema()).withConnection(distribute);
    await this.locate();
  }

  /** Finds the nodes and shards of a Citus cluster, now and regularly. Returns false on other engines. */
  async locate(): Promise<boolean> {
    const server = this.any;
    const wasEmpty = this.#nodes.isEmpty;
    if (!(await this.#nodes.locateFrom(server))) return false;
    if (wasEmpty && !this.#nodes.isEmpty) void this.#seed.disconnect();
    const { coordinator } = this.#nodes;
    if (server === this.#seed && coordinator !== undefined) {
      // The first host of the address can be a failed worker that was started again, with the map from before its failure.
      await this.#nodes.locateFrom(coordinator).catch(() => {});
    }
    this.#timer ??= setInterval(() => void this.locate().catch(() => {}), locateIntervalMs).unref();
    return true;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([this.#seed.close(), this.#nodes.close()]);
  }
}
