/**
 * One connection. Statements are pipelined: each is sent without waiting for the responses to earlier ones, which
 * arrive in the same order. A connection does not reconnect; the pool replaces a lost one (pool.ts).
 */
import { addAbortListener } from 'node:events';
import { Socket } from 'node:net';
import { hostname } from 'node:os';
import { Client, types, type QueryArrayResult } from 'pg';
import { isSocket, tlsOptions, type Address, type Place } from './address.ts';
import { Refusal } from '../../refusal.ts';
import { sql, type Row, type Statement } from '../../sql/statement.ts';
import { codeOf, ConnectionError, isDefect, poolerReason } from '../errors.ts';
import {
  isPostgres,
  refuseUnsafe,
  serverInfoColumns,
  settings,
  type ServerRow,
} from '../schema/check.ts';
import { responseTimeoutMs, waitTimeoutMs } from './timeout.ts';

/** What the server shows of a session to its administrator. */
const applicationName = `plant-store ${process.pid} ${hostname()}`;

/** After this time without traffic, the operating system probes the other side. */
const keepAliveMs = 30_000;

/**
 * The server cancels statements after these times, because an abandoned one would keep the row of a store locked. They
 * are startup parameters, which a pooler in between refuses or ignores. It would share or lose settings of a session.
 */
const timeouts = {
  statement_timeout: 3_000,
  lock_timeout: 2_000,
  idle_in_transaction_session_timeout: 4_000,
};
/** Whether a server shows a time limit as it was set: `2s`, `2000ms` or `2000`. */
function isInForce(shown: string | null | undefined, ms: number): boolean {
  return [`${ms / 1_000}s`, `${ms}ms`, String(ms)].includes(shown ?? '');
}

/**
 * Each statement has one good plan, which uses the index created for it. PostgreSQL caches plans, and can choose
 * another one while the tables are small. Before PostgreSQL 18, these settings give plans that must sort an enormous
 * cost, for which `jit` would compile each statement, for longer than it runs.
 */
export const plannerSettings = [
  ...['seqscan', 'bitmapscan', 'sort', 'hashjoin', 'mergejoin'].map((plan) => `enable_${plan}`),
  'jit',
]
  .map((name) => `SET ${name} = off`)
  .join(';');

// int8 is read as a number, because ids and times have at most 53 bits. The cast is needed because the type has an
// overload for each format, and one function does not match them.
const int8 = 20;
const columnTypes = {
  getTypeParser: ((oid: number, format: 'text' | 'binary') =>
    oid === int8 ? Number : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
};

/** The first columns are the `timeouts`. */
const sessionInfoSql = sql<ServerRow>`
  SELECT ${settings(Object.keys(timeouts))}, ${serverInfoColumns}`;

export class Connection {
  readonly #client: Client;
  readonly #closed = Promise.withResolvers<void>();
  /** Resolves when the connection ends, for any reason. */
  readonly closed = this.#closed.promise;
  /** When a query last succeeded. */
  lastResultMs = 0;
  #inFlight = 0;
  #isLost = false;
  /** Closes the connection if the server is silent for so long, because something is wrong. */
  readonly #deadline = setTimeout(() => {
    if (this.#inFlight > 0) this.destroy();
  }, responseTimeoutMs).unref();

  private constructor(client: Client) {
    this.#client = client;
    client.on('error', () => this.#markLost());
    client.on('end', () => this.#markLost());
  }

  /**
   * Connects, configures the session, and resolves to the result of `verify`, until `stop` aborts that. Throws Refusal if
   * the settings of the server are not safe.
   */
  static async open<T>(
    { user, password, database, tls }: Address,
    place: Place,
    stop: AbortSignal,
    verify: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const client = new Client({
      host: place.host,
      port: place.port,
      ...(!isSocket(place.host) && { stream: () => socketTo(place.ip) }),
      ...(user !== undefined && { user }),
      ...(password !== undefined && { password }),
      ...(database !== undefined && { database }),
      ssl: tlsOptions(place, tls),
      application_name: applicationName,
      connectionTimeoutMillis: waitTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
      types: columnTypes,
      pipeline: true,
      ...timeouts,
    });
    const connection = new Connection(client);
    using _ = addAbortListener(stop, () => connection.destroy());
    try {
      await client.connect().catch((error: unknown) => {
        throw codeOf(error) === undefined ? new ConnectionError(error) : error;
      });
      const [info = []] = await connection.query(sessionInfoSql, []);
      const limits = Object.values(timeouts);
      if (!limits.every((ms, at) => isInForce(info[at], ms))) throw new Refusal(poolerReason);
      const server = info.slice(limits.length);
      refuseUnsafe(server);
      if (isPostgres(server)) await connection.command(plannerSettings);
      return await verify(connection);
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Number of statements without a response yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  async query<R extends Row>(statement: Statement<R>, values: readonly unknown[]): Promise<R[]> {
    const query = { ...statement, values: [...values], rowMode: 'array' as const };
    const response = Promise.try(() => this.#client.query<unknown[]>(query));
    const { rows } = await this.#watched(response);
    this.lastResultMs = performance.now();
    return rows as Row[] as R[]; // the compiler cannot check the columns of SQL
  }

  /** Runs a statement that is not prepared. Returns the command tag, such as `COMMIT`. */
  async command(text: string): Promise<string> {
    return (await this.#watched(this.#client.query(text))).command;
  }

  /** Runs a statement that is not prepared, without a time limit of the client. */
  async commandWithoutDeadline(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<QueryArrayResult> {
    return this.#usable(this.#client.query({ text, values: [...values], rowMode: 'array' }));
  }

  /** Waits for statements in flight and for the server to disconnect, up to a timeout. */
  async close(): Promise<void> {
    this.#isLost = true; // so that nothing more is sent
    const timer = setTimeout(() => this.destroy(), responseTimeoutMs);
    await this.#client.end().finally(() => clearTimeout(timer));
  }

  /** Closes the connection now. Statements in flight are rejected. */
  destroy(): void {
    this.#markLost();
    this.#client.connection.stream.destroy(); // pg cannot end a connection that does not respond
  }

  /** Closes the connection after a failure that makes it unusable. */
  async #usable<T>(response: Promise<T>): Promise<T> {
    try {
      return await response;
    } catch (error) {
      if (!isDefect(error)) throw error;
      if (this.#isLost) throw new ConnectionError(error);
      this.destroy(); // pg could match the next responses to the wrong statements
      throw error;
    }
  }

  /** Counts a statement in flight, whose response has to arrive before the deadline. */
  #watched<T>(response: Promise<T>): Promise<T> {
    if (this.#inFlight++ === 0) this.#deadline.refresh();
    const counted = response.finally(() => {
      this.#inFlight--;
      this.#deadline.refresh();
    });
    return this.#usable(counted);
  }

  #markLost(): void {
    this.#isLost = true;
    this.#closed.resolve();
  }
}

/** pg uses the name of the host, for TLS for example, and this socket connects to the address. */
function socketTo(address: string): Socket {
  const socket = new Socket();
  const connect = socket.connect.bind(socket);
  // The type has several overloads, of which pg uses this one.
  socket.connect = ((port: number) => connect(port, address)) as typeof socket.connect;
  return socket;
}
