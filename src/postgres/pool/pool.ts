/**
 * The connections of this process to one server: up to four that all reads share, one that all checks share, and up to
 * eight for one transaction each. They open on demand, also to replace lost ones. Each server has its own limits, so a
 * server that hangs does not delay requests to the others.
 */
import { FairSemaphore } from '../../shared/fair-semaphore.ts';
import { outcomeUnknown, Problem } from '../../problem.ts';
import { Refusal } from '../../refusal.ts';
import { Breaker } from './breaker.ts';
import type { Connection, OpenOptions } from './connection.ts';
import { sql, type Row, type Statement, type Query } from '../../sql/statement.ts';
import {
  codeOf,
  isStatementError,
  isConnectionLost,
  problemOf,
  TimeoutError,
  settled,
} from '../errors.ts';
import type { Hosts } from './hosts.ts';
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

interface PoolOptions {
  /** Such as `db1:5432`. */
  name: string;
  /** The server is unavailable, or available again if `fault` is undefined. */
  onFault: (fault: unknown) => void;
  verify?: OpenOptions['verify'];
  /** Reads a table, and checks the settings of the server. */
  check: (connection: Connection) => Promise<Schema>;
}

export class Pool {
  readonly #hosts: Hosts;
  readonly name: string;
  readonly #options: PoolOptions;
  readonly #all = new Set<Connection>();
  #shared: Connection[] = [];
  #opening: Promise<void> | undefined;
  #checking: Promise<Connection> | undefined;
  /** Connections for transactions that nothing uses. */
  readonly #free: Connection[] = [];
  readonly #sentReads: FairSemaphore;
  readonly #transactions: FairSemaphore;
  /** By user. */
  readonly scanSteps = new FairSemaphore({ max: maxScanSteps });
  readonly breaker: Breaker;
  readonly #stop = new AbortController();

  constructor(hosts: Hosts, options: PoolOptions) {
    const { name, onFault } = options;
    this.#hosts = hosts;
    this.name = name;
    this.#options = options;
    this.#sentReads = new FairSemaphore({
      max: maxSentReads,
      maxWaiting: maxWaitingReads,
      maxWaitMs: waitTimeoutMs,
      refusal: tooManyReads,
    });
    this.#transactions = new FairSemaphore({
      max: maxExclusive,
      maxOfKey: maxTransactions,
      maxWaitMs: responseTimeoutMs,
      refusal: () => new TimeoutError(),
    });
    const onChange = (fault: unknown) => {
      // Reads and checks that wait for the server can fail now. The outcome of a transaction can still arrive.
      if (fault !== undefined) {
        for (const connection of [...this.#shared, ...this.#free]) connection.destroy();
        this.#checking?.then((connection) => connection.destroy()).catch(() => {});
      }
      onFault(fault);
    };
    this.breaker = new Breaker(() => this.#probe(), onChange, this.#stop.signal);
  }

  /** Closes all connections when their statements have ended. */
  disconnect(): void {
    for (const connection of this.#all) void connection.close();
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
    try {
      const send = async () => {
        await this.#sentReads.acquire(turn);
        const release = () => this.#sentReads.release(turn);
        const connection = await this.#sharedConnection().catch((error: unknown) => {
          release();
          throw error;
        });
        return connection.query(statement, values, release);
      };
      return await withTimeout(withRetries(send, { isFinal }));
    } catch (error) {
      throw problemOf(error);
    }
  }

  /**
   * Runs a health or schema check, which does not wait behind requests: an overloaded service is healthy. After a Refusal,
   * the server is unavailable until another connection can be opened. Rejects with the error of the server.
   */
  async check<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      return await withTimeout(withRetries(async () => work(await this.#checkConnection())));
    } catch (error) {
      if (error instanceof Refusal) this.breaker.trip(error);
      throw error;
    }
  }

  async checkServer(): Promise<Schema> {
    return this.check(this.#options.check);
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
    const attempt = (connection: Connection) =>
      withTimeout(sendAll(connection, statements), responseTimeoutMs, () =>
        connection.destroy(),
      ).catch((error: unknown) => {
        isOutcomeUnknown ||= isConnectionLost(error); // whatever happens to the next attempt
        throw error;
      });
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
    await this.#transactions.acquire(kind);
    try {
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
    } finally {
      this.#transactions.release(kind);
    }
  }

  /** Waits for all statements in flight and closes all connections. Attempts to connect end. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#all].map((connection) => connection.close()));
  }

  /** Returns the least busy connection. If all are busy, opens another one. */
  async #sharedConnection(): Promise<Connection> {
    let least = this.#leastBusy();
    const isEnough =
      least !== undefined &&
      (least.inFlight < readsPerConnection || this.#shared.length >= maxShared);
    if (!isEnough) {
      this.#opening ??= this.#open()
        .then((connection) => this.#share(connection))
        .finally(() => (this.#opening = undefined));
      if (least === undefined) await this.#opening;
      else this.#opening.catch(() => {}); // the open ones suffice
      least ??= this.#leastBusy();
    }
    if (least === undefined) throw new TimeoutError(); // the new connection is already lost
    return least;
  }

  #leastBusy(): Connection | undefined {
    let least: Connection | undefined;
    for (const connection of this.#shared) {
      if (connection.isLost) continue;
      if (least === undefined || connection.inFlight < least.inFlight) least = connection;
    }
    return least;
  }

  /** Checks share a connection, because none of them begins a transaction. */
  #checkConnection(): Promise<Connection> {
    if (this.#checking === undefined) {
      const forget = () => void (this.#checking = undefined);
      this.#checking = this.#open();
      this.#checking.then(({ closed }) => closed).then(forget, forget);
    }
    return this.#checking;
  }

  async #open(): Promise<Connection> {
    this.breaker.assertAvailable();
    try {
      return await this.#connect();
    } catch (error) {
      // A server can have too many connections, and serve those that are open.
      const isServing = this.#all.values().some(({ isLost, isSilent }) => !isLost && !isSilent);
      if (error instanceof Refusal || !isServing) this.breaker.trip(error);
      throw error;
    }
  }

  /** A server whose disk hangs, or whose tables are locked, accepts connections. So a probe also reads a table. */
  async #probe(): Promise<void> {
    const connection = await this.#connect();
    await this.#options.check(connection).catch((error: unknown) => {
      if (schemaErrors.test(codeOf(error) ?? '')) return;
      connection.destroy();
      throw error;
    });
    this.#share(connection);
  }

  #share(connection: Connection): void {
    if (this.#shared.length >= maxShared) void connection.close();
    else if (!connection.isLost) this.#shared.push(connection);
  }

  async #connect(): Promise<Connection> {
    const { signal: stop } = this.#stop;
    const connection = await this.#hosts.open({ stop, verify: this.#options.verify });
    this.#all.add(connection);
    void connection.closed.then(() => this.#remove(connection));
    connection.onSilent = () => this.breaker.suspect();
    if (stop.aborted) connection.destroy();
    return connection;
  }

  #remove(connection: Connection): void {
    this.#all.delete(connection);
    this.#shared = this.#shared.filter((other) => other !== connection);
  }
}

function sendAll(connection: Connection, statements: readonly Query[]): Promise<Row[][]> {
  return settled(statements.map(([statement, values]) => connection.query(statement, values)));
}

function tooManyReads(): Problem {
  return new Problem('overloaded', 'Too many reads are pending. Try again later.');
}
