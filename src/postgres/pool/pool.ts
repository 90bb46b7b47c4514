/**
 * The connections of this process to one server: up to four that all reads share, and those that one transaction or check
 * uses at a time. They open on demand, also to replace lost ones. Each server has its own limits, so a server that hangs
 * does not delay requests to the others.
 */
import { FairSemaphore } from '../../shared/fair-semaphore.ts';
import { outcomeUnknown, Problem } from '../../problem.ts';
import { Refusal } from '../../refusal.ts';
import type { Address } from './address.ts';
import type { Connection } from './connection.ts';
import { sql, type Row, type Statement, type Query } from '../../sql/statement.ts';
import {
  codeOf,
  isStatementError,
  isConnectionLost,
  problemOf,
  TimeoutError,
  settled,
} from '../errors.ts';
import { Health } from './health.ts';
import { Hosts, type HostsOptions } from './hosts.ts';
import { withRetries } from './retries.ts';
import { responseTimeoutMs, waitTimeoutMs, withTimeout } from './timeout.ts';
import type { Schema } from '../../shared/migrations.ts';

/** Maximum number of connections that reads share, and that transactions use one at a time. */
const maxShared = 4;
const maxExclusive = 8;
/** Maximum number of transactions of each kind, so that those that wait for locks leave room for others. */
export const maxTransactions = 4;
/** Reads in flight on each shared connection before another one is opened. */
const readsPerConnection = 8;
/** Maximum number of waiting reads. Beyond it, reads of the user with the most are refused. */
const maxWaitingReads = 1_920;
/**
 * Maximum number of reads in flight. Others wait here, for a limited time: the server runs everything that was
 * sent, even if nothing waits for it any more.
 */
const maxSentReads = 128;
/**
 * Maximum number of steps of scans in flight: a step takes the server longer than a page, and pages must not wait behind
 * the scans of many users.
 */
const maxScanSteps = 2;
/** There is no schema yet, or it was dropped. The server still responds. */
const schemaErrors = /^(?:42|3F)/;

const begin: Query = [sql`BEGIN`, []];
const commit: Query = [sql`COMMIT`, []];
const rollback: Query = [sql`ROLLBACK`, []];

/** `swift`: writes that wait for no lock of a store. `patient`: those that do. */
type TransactionKind = 'swift' | 'patient' | 'other';

export interface PoolOptions extends Omit<HostsOptions, 'stop'> {
  /** Such as `db1:5432`. */
  name: string;
  /** The server is unavailable, or available again if `fault` is undefined. */
  onFault: ((server: string, fault: unknown) => void) | undefined;
  /** Reads a table, and checks the settings of the server. */
  check: (connection: Connection) => Promise<Schema>;
}

export class Pool {
  readonly name: string;
  readonly hosts: Hosts;
  readonly health: Health;
  readonly #check: PoolOptions['check'];
  #shared: Connection[] = [];
  #opening: Promise<Connection> | undefined;
  /** Connections that only one transaction or check can use at a time, and nothing uses now. */
  readonly #free: Connection[] = [];
  readonly #sentReads = new FairSemaphore({
    max: maxSentReads,
    maxWaiting: maxWaitingReads,
    maxWaitMs: waitTimeoutMs,
    refusal: tooManyReads,
  });
  readonly #transactions = new FairSemaphore({
    max: maxExclusive,
    maxOfKey: maxTransactions,
    maxWaitMs: responseTimeoutMs,
    refusal: () => new TimeoutError(),
  });
  /** By user. */
  readonly scanSteps = new FairSemaphore({ max: maxScanSteps });
  readonly #stop = new AbortController();

  constructor(address: Address, { name, check, onFault, ...options }: PoolOptions) {
    const { signal: stop } = this.#stop;
    this.name = name;
    this.hosts = new Hosts(address, { ...options, stop });
    this.#check = check;
    this.health = new Health({
      check: () => this.check(check),
      probe: () => this.#probe(),
      isServing: (sinceMs) => this.hosts.connections.some((one) => one.lastResultMs > sinceMs),
      onFault: (fault) => {
        // Reads that wait for the server can fail now. The outcome of a transaction can still arrive.
        if (fault !== undefined) {
          for (const connection of [...this.#shared, ...this.#free]) connection.destroy();
        }
        onFault?.(name, fault);
      },
      stop,
    });
  }

  /** Closes all connections when their statements have ended. */
  async disconnect(): Promise<void> {
    await Promise.all(this.hosts.connections.map((connection) => connection.close()));
  }

  /**
   * Runs a statement that only reads. Rejects with a Problem if the database does not respond, and does not retry an
   * error that `isFinal`. If reads have to wait, those with different values of `turn` take turns.
   */
  async read<R extends Row>(
    statement: Statement<R>,
    values: readonly unknown[],
    turn = '',
    isFinal?: (error: unknown) => boolean,
  ): Promise<R[]> {
    const send = () =>
      this.#sentReads.run(turn, async () =>
        (await this.#sharedConnection()).query(statement, values),
      );
    return withTimeout(withRetries(send, { isFinal })).catch((error: unknown) => {
      throw problemOf(error);
    });
  }

  /** Runs a check, which does not wait behind requests: an overloaded service is healthy. Rejects with its error. */
  async check<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    return withTimeout(withRetries(() => this.#use(work)));
  }

  /** Runs statements that can be repeated, in one transaction. Resolves to the rows of each. */
  async transact(...statements: readonly Query[]): Promise<Row[][]> {
    return this.#transact([begin, ...statements, commit]);
  }

  /** The same, but changes nothing. */
  async rehearse(...statements: readonly Query[]): Promise<Row[][]> {
    return this.#transact([begin, ...statements, rollback]);
  }

  async #transact(statements: readonly Query[]): Promise<Row[][]> {
    let isOutcomeUnknown = false;
    const attempt = (connection: Connection) => {
      const sent = settled(statements.map((query) => connection.query(...query)));
      return withTimeout(sent, responseTimeoutMs, () => connection.destroy()).catch(
        (error: unknown) => {
          isOutcomeUnknown ||= isConnectionLost(error); // whatever happens to the next attempt
          throw error;
        },
      );
    };
    try {
      return (await withRetries(() => this.withConnection(attempt))).slice(1, -1);
    } catch (error) {
      throw isOutcomeUnknown ? outcomeUnknown(error) : problemOf(error);
    }
  }

  /**
   * Runs `work` with a connection that nothing else uses meanwhile. Closes the connection if it fails. If all are in
   * use, the kinds of transactions take turns.
   */
  async withConnection<T>(
    work: (connection: Connection) => Promise<T>,
    kind: TransactionKind = 'other',
  ): Promise<T> {
    return this.#transactions.run(kind, () => this.#use(work));
  }

  /** Waits for all statements in flight and closes all connections. Attempts to connect end. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.disconnect();
  }

  async #use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    let connection = this.#free.pop();
    while (connection?.isLost === true) connection = this.#free.pop();
    connection ??= await this.#open();
    try {
      const result = await work(connection);
      this.#free.push(connection);
      return result;
    } catch (error) {
      if (isStatementError(error) || error instanceof Problem) this.#free.push(connection);
      else connection.destroy();
      throw error;
    }
  }

  /** Returns the least busy connection. If all are busy, opens another one. */
  async #sharedConnection(): Promise<Connection> {
    this.#shared = this.#shared.filter(({ isLost }) => !isLost);
    const [least] = this.#shared.toSorted((a, b) => a.inFlight - b.inFlight);
    const canOpen = this.#shared.length < maxShared;
    if (least !== undefined && (least.inFlight < readsPerConnection || !canOpen)) return least;
    this.#opening ??= this.#openShared().finally(() => (this.#opening = undefined));
    if (least === undefined) return this.#opening;
    this.#opening.catch(() => {}); // the open ones suffice
    return least;
  }

  async #openShared(): Promise<Connection> {
    const connection = await this.#open();
    this.#shared.push(connection);
    return connection;
  }

  async #open(): Promise<Connection> {
    this.health.assertAvailable();
    try {
      return await this.hosts.open();
    } catch (error) {
      // A server can have too many connections, and serve those that are open.
      if (error instanceof Refusal || this.hosts.connections.length === 0) this.health.suspect();
      throw error;
    }
  }

  /** A server whose disk hangs, or whose tables are locked, accepts connections. So a probe also reads a table. */
  async #probe(): Promise<void> {
    try {
      const connection = await this.hosts.open();
      await this.#check(connection).finally(() => void connection.close());
    } catch (error) {
      const code = codeOf(error);
      // A server with too many connections, for example, still responds.
      const hasResponded = code !== undefined && this.hosts.connections.length > 0;
      if (!hasResponded && !schemaErrors.test(code ?? '')) throw error;
    }
  }
}

function tooManyReads(): Problem {
  return new Problem('overloaded', 'Too many reads are pending. Try again later.');
}
