/**
 * One connection. Statements are pipelined: each is sent without waiting for the responses to earlier ones, which
 * arrive in the same order. A connection does not reconnect; the pool replaces a lost one (pool.ts).
 */
import { randomBytes } from 'node:crypto';
import { Socket } from 'node:net';
import { hostname } from 'node:os';
import { Client, types, type QueryArrayResult } from 'pg';
import { isSocket, tlsOptions, type Address, type Host } from './address.ts';
import { Refusal } from '../../refusal.ts';
import { sql, type Row, type Statement } from '../../sql/statement.ts';
import { codeOf, isDefect, ConnectionError, poolerRefusal, WrongServer } from '../errors.ts';
import { responseTimeoutMs, silentMs, waitTimeoutMs } from './timeout.ts';

/** Distinguishes the processes that use a database: those in containers can have the same number and host name. */
const applicationName = `plant-store ${randomBytes(4).toString('hex')} ${process.pid} ${hostname()}`;

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

export interface OpenOptions {
  /** Ends the attempt. */
  stop: AbortSignal;
  /** Rejects if the connection leads to another server than expected. */
  verify?: ((connection: Connection) => Promise<void>) | undefined;
}

export class Connection {
  readonly #client: Client;
  readonly #closed = Promise.withResolvers<void>();
  /** Resolves when the connection ends, for any reason. */
  readonly closed = this.#closed.promise;
  #inFlight = 0;
  #lastResponseMs = 0;
  #watch: NodeJS.Timeout | undefined;
  #isLost = false;
  /** Called while the server is silent. */
  onSilent: () => void = () => {};

  private constructor(client: Client) {
    this.#client = client;
    client.on('error', () => this.#markLost());
    client.on('end', () => this.#markLost());
  }

  /**
   * Connects to one address of the host and configures the session. Throws Refusal if the settings of the server
   * are not safe.
   */
  static async open(
    address: Address,
    host: Host,
    hostAddress: string,
    { stop, verify = async () => {} }: OpenOptions,
  ): Promise<Connection> {
    const { user, password, database, tls } = address;
    const client = new Client({
      ...host,
      ...(!isSocket(hostAddress) && { stream: () => socketTo(hostAddress) }),
      ...(user !== undefined && { user }),
      ...(password !== undefined && { password }),
      ...(database !== undefined && { database }),
      ssl: tlsOptions(host, tls),
      application_name: applicationName,
      connectionTimeoutMillis: waitTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
      types: columnTypes,
      pipeline: true,
      ...timeouts,
    });
    const connection = new Connection(client);
    const onStop = () => connection.destroy();
    stop.addEventListener('abort', onStop);
    try {
      await client.connect().catch((error: unknown) => {
        throw codeOf(error) === undefined ? new ConnectionError(error) : error;
      });
      const [info = []] = await connection.query(sessionInfoSql, []);
      const limits = Object.values(timeouts);
      if (!limits.every((ms, at) => isInForce(info[at], ms))) throw poolerRefusal();
      const server = info.slice(limits.length);
      refuseUnsafe(server);
      if (isPostgres(server)) await connection.command(plannerSettings);
      await verify(connection);
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    } finally {
      stop.removeEventListener('abort', onStop);
    }
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Number of statements without a response yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether the server has not responded for so long that something is wrong. */
  get isSilent(): boolean {
    return this.#inFlight > 0 && this.#silenceMs() >= silentMs;
  }

  /** `onSettled` is called when the statement ends, even if its caller has stopped waiting. */
  async query<R extends Row>(
    statement: Statement<R>,
    values: readonly unknown[],
    onSettled = () => {},
  ): Promise<R[]> {
    const query = { ...statement, values: [...values], rowMode: 'array' as const };
    const response = Promise.try(() => this.#client.query<unknown[]>(query));
    const { rows } = await this.#watched(response, onSettled);
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

  /** Closes the connection if nothing responds for `responseTimeoutMs`. */
  #watched<T>(response: Promise<T>, onSettled = () => {}): Promise<T> {
    if (this.#inFlight === 0) this.#lastResponseMs = performance.now();
    this.#inFlight++;
    this.#watch ??= setTimeout(() => this.#checkSilence(), silentMs);
    const counted = response.finally(() => {
      this.#inFlight--;
      this.#lastResponseMs = performance.now();
      onSettled();
    });
    return this.#usable(counted);
  }

  #checkSilence(): void {
    this.#watch = undefined;
    if (this.#inFlight === 0 || this.#isLost) return;
    const silenceMs = this.#silenceMs();
    if (silenceMs >= responseTimeoutMs) return this.destroy();
    const isSilent = silenceMs >= silentMs;
    if (isSilent) this.onSilent();
    const leftMs = (isSilent ? responseTimeoutMs : silentMs) - silenceMs;
    this.#watch = setTimeout(() => this.#checkSilence(), Math.min(leftMs, silentMs));
  }

  #silenceMs(): number {
    return performance.now() - this.#lastResponseMs;
  }

  #markLost(): void {
    this.#isLost = true;
    clearTimeout(this.#watch);
    this.#closed.resolve();
  }
}

/** Settings that must not be off, or acknowledged changes can be lost. */
const durabilitySettings = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;

export type ServerRow = readonly (string | null)[];

function settings(names: readonly string[]): string {
  return names.map((name) => `current_setting('${name}', true)`).join();
}

export const serverInfoColumns = `
  version(), current_setting('transaction_read_only'), current_setting('server_encoding', true),
  ${settings(durabilitySettings)}`;

/** The first columns are the `timeouts`. */
const sessionInfoSql = sql<ServerRow>`
  SELECT ${settings(Object.keys(timeouts))}, ${serverInfoColumns}`;

/**
 * Throws WrongServer if the server accepts no writes, and Refusal if changes or text could be lost. Engines without
 * a setting have no way to switch it off.
 */
export function refuseUnsafe([, readOnly, encoding = null, ...durability]: ServerRow): void {
  if (readOnly === 'on') throw new WrongServer('the server is read-only'); // a standby, for example
  const refusalOf = (setting: string, value: string, wanted: string) =>
    new Refusal(
      `The database server runs with ${setting} = ${value}, but Plant Store needs ${wanted}.`,
    );
  if (encoding !== 'UTF8' && encoding !== null) {
    throw refusalOf('server_encoding', encoding, 'UTF8, so that it can store any name');
  }
  for (const [at, setting] of durabilitySettings.entries()) {
    if (durability[at] === 'off') {
      throw refusalOf(setting, 'off', 'on, so that acknowledged changes survive a crash');
    }
  }
}

/** False for other engines with the same protocol: their planners have other settings. */
function isPostgres([version]: ServerRow): boolean {
  return /^PostgreSQL (?!.*-YB-)/.test(version ?? '');
}

/** pg uses the name of the host, for TLS for example, and this socket connects to the address. */
function socketTo(address: string): Socket {
  const socket = new Socket();
  const connect = socket.connect.bind(socket);
  // The type has several overloads, of which pg uses this one.
  socket.connect = ((port: number) => connect(port, address)) as typeof socket.connect;
  return socket;
}
