/**
 * One connection. Statements are sent without waiting for the answers of those before; answers come
 * in the same order. It does not mend itself: once it is lost, another takes its place (pool.ts).
 */
import { Socket } from 'node:net';
import { Client, types, type QueryResult } from 'pg';
import { isSocket, tlsOptions, type Address, type Host } from './address.ts';
import { Refusal } from '../refusal.ts';
import { codeOf, isDefect, ConnectionError, ReadOnlyServer } from './errors.ts';
import { responseTimeoutMs, connectTimeoutMs, withTimeout } from './timeout.ts';

/** Columns in the order of the statement: null, text, number, boolean or bytes. */
export type Row = readonly unknown[];

/** A statement that is prepared once for each connection, and what its columns hold. */
export interface Statement<R extends Row = Row> {
  name: string;
  text: string;
  /** For the compiler alone. */
  row?: R;
}

export function prepared<R extends Row = Row>(name: string, text: string): Statement<R> {
  return { name, text };
}

/** After so long without a word the system asks whether the other side is still there. */
const keepAliveMs = 30_000;

/**
 * A server that nobody waits for any more must not go on, nor hold the row of a store locked: not while
 * it works, nor while it waits for us.
 */
const settings = `
  SET statement_timeout = 3000;
  SET lock_timeout = 2000;
  SET idle_in_transaction_session_timeout = 4000`;

/**
 * Each statement has one good plan: the index that is made for it. PostgreSQL keeps the plan that it
 * made when the tables were small, and another plan may look as good then.
 */
export const plannerSettings = ['seqscan', 'bitmapscan', 'sort', 'hashjoin', 'mergejoin']
  .map((plan) => `SET enable_${plan} = off`)
  .join(';');

// As numbers, because ids and times have at most 53 bits; everything else the way that pg has it. The type
// has a form for each kind of column, which the compiler does not find in one function.
const int8 = 20;
const columnTypes = {
  getTypeParser: ((oid: number, format: 'text' | 'binary') =>
    oid === int8 ? Number : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
};

export class Connection {
  readonly #client: Client;
  readonly #loss = Promise.withResolvers<void>();
  #inFlight = 0;
  #lastAnswerMs = 0;
  #isLost = false;

  private constructor(client: Client) {
    this.#client = client;
    client.on('error', () => this.#lose());
    client.on('end', () => this.#lose());
  }

  /**
   * Connects to the host where it is, and sets the connection up. Throws Refusal where the server is
   * not one to rely on.
   */
  static async open(address: Address, host: Host, where: string): Promise<Connection> {
    const { user, password, database, tls } = address;
    const client = new Client({
      ...host,
      ...(!isSocket(where) && { stream: () => socketTo(where) }),
      ...(user !== undefined && { user }),
      ...(password !== undefined && { password }),
      ...(database !== undefined && { database }),
      ssl: tlsOptions(host, tls),
      application_name: 'plant-store',
      connectionTimeoutMillis: connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
      types: columnTypes,
      pipeline: true,
    });
    const connection = new Connection(client);
    try {
      await client.connect().catch((error: unknown) => {
        throw codeOf(error) === undefined ? new ConnectionError(error) : error;
      });
      await connection.#simple(settings);
      const [server = []] = await connection.query(serverInfoSql, []);
      refuseUnsafe(server);
      if (isPostgresItself(server)) await connection.#simple(plannerSettings);
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Resolves when it is gone, however it ends. */
  get loss(): Promise<void> {
    return this.#loss.promise;
  }

  /** Statements whose answer has not come. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** `onOver` is called when the connection is done with it, be it after nobody waits any more. */
  async query<R extends Row>(
    statement: Statement<R>,
    values: readonly unknown[],
    onOver = () => {},
  ): Promise<R[]> {
    const query = { ...statement, values: [...values], rowMode: 'array' as const };
    const answer = Promise.try(() => this.#client.query<unknown[]>(query));
    try {
      const { rows } = await this.#timed(answer.finally(onOver));
      return rows as Row[] as R[]; // SQL has no types for the compiler
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** A statement that is not prepared, and what the server says that it did: `COMMIT`, say. */
  async command(text: string): Promise<string> {
    return (await this.#simple(text)).command;
  }

  /** The same for what takes as long as there are rows: neither the server nor we give up on it. */
  async longCommand(text: string): Promise<void> {
    const limits = 'SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0';
    try {
      await this.#client.query(`BEGIN; ${limits}; ${text}; COMMIT`);
    } catch (error) {
      await this.#simple('ROLLBACK').catch(() => {}); // the first error says more
      throw this.#failed(error);
    }
  }

  /** The same with the limits of the session, however long that is. Returns how many rows it has changed. */
  async longStatement(text: string): Promise<number> {
    try {
      return (await this.#client.query(text)).rowCount ?? 0;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** Waits for what is under way, and for the server to let go, but not for ever. */
  async close(): Promise<void> {
    this.#isLost = true; // to whoever would send more
    const timer = setTimeout(() => this.destroy(), responseTimeoutMs);
    await this.#client.end().finally(() => clearTimeout(timer));
  }

  /** Ends it now; what is under way is rejected. */
  destroy(): void {
    this.#lose();
    this.#client.connection.stream.destroy(); // pg has no other way to end one that does not answer
  }

  async #simple(text: string): Promise<QueryResult> {
    try {
      return await this.#timed(this.#client.query(text));
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** What to throw for the error of a statement: where the connection is gone, it tells of that. */
  #failed(error: unknown): unknown {
    if (!isDefect(error)) return error;
    if (this.#isLost) return new ConnectionError(error);
    this.destroy(); // pg may hold the answers to the next statements for those to this one
    return error;
  }

  #timed<T>(answer: Promise<T>): Promise<T> {
    if (this.#inFlight === 0) this.#lastAnswerMs = performance.now();
    this.#inFlight++;
    const answered = answer.finally(() => this.#answered());
    return withTimeout(answered, () => {
      // Others may have been answered meanwhile, and this one waits behind many.
      if (performance.now() - this.#lastAnswerMs >= responseTimeoutMs) this.destroy();
    });
  }

  #answered(): void {
    this.#inFlight--;
    this.#lastAnswerMs = performance.now();
  }

  #lose(): void {
    this.#isLost = true;
    this.#loss.resolve();
  }
}

/** What a server that keeps what it acknowledges has not switched off. */
export const durabilitySettings = ['fsync', 'full_page_writes', 'synchronous_commit'] as const;

type ServerRow = readonly (string | null)[];

export const serverInfoSql = prepared<ServerRow>(
  'server_info',
  `
    SELECT version(), current_setting('transaction_read_only'), current_setting('server_encoding', true),
           ${durabilitySettings.map((setting) => `current_setting('${setting}', true)`).join()}`,
);

/** What durability and text rest on is asserted, not assumed. Engines without a setting have it no other way. */
export function refuseUnsafe([, readOnly, encoding = null, ...keeping]: ServerRow): void {
  if (readOnly === 'on') throw new ReadOnlyServer();
  const refused = (setting: string, value: string, wanted: string) =>
    new Refusal(
      `The database server runs with ${setting} = ${value}; Plant Store needs it ${wanted}.`,
    );
  if (encoding !== 'UTF8' && encoding !== null) {
    throw refused('server_encoding', encoding, 'UTF8, so that it can hold any name');
  }
  for (const [at, setting] of durabilitySettings.entries()) {
    if (keeping[at] === 'off') throw refused(setting, 'off', 'on, to keep what is acknowledged');
  }
}

/** Not another engine that speaks its protocol: those have planners and settings of their own. */
function isPostgresItself([version]: ServerRow): boolean {
  return /^PostgreSQL (?!.*-YB-)/.test(version ?? '');
}

/** pg goes by the name of the host, in TLS say; this socket goes to the address. */
function socketTo(address: string): Socket {
  const socket = new Socket();
  const connect = socket.connect.bind(socket);
  // Of all the forms that its type has, pg calls this one.
  socket.connect = ((port: number) => connect(port, address)) as typeof socket.connect;
  return socket;
}
