/**
 * The connections of this process: up to four that all reads share, up to four for one transaction each, and
 * one for checks. They open on demand, and the next use replaces one that was lost.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { PoolLane } from '../channels.ts';
import { outcomeUnknown, Problem } from '../problem.ts';
import { resolveHost, type Address, type Host } from './address.ts';
import { Connection, type Row, type Statement } from './connection.ts';
import {
  isStatementError,
  isDefect,
  isConnectionLost,
  isRetryable,
  problemOf,
  ReadOnlyServer,
  TimeoutError,
} from './errors.ts';
import { Semaphore } from './semaphore.ts';
import { responseTimeoutMs } from './timeout.ts';

/** Maximum number of connections that reads share, and that transactions use one at a time. */
const maxShared = 4;
const maxExclusive = 4;
/** Reads in flight on each shared connection before another one is opened. */
const readsPerConnection = 8;
/** Maximum number of reads in flight or waiting; more are refused immediately. */
const maxReads = 2_048;
/**
 * Maximum number of reads in flight. Others wait here, for a limited time: the server runs everything that was
 * sent, even if nothing waits for it any more.
 */
const maxSentReads = 128;
const maxReadWaitMs = 2_000;
/**
 * How long a transient failure is retried, and how long the longest pause between attempts is. A conflict is
 * retried for all of that time, because one of the transactions in conflict has succeeded.
 */
const maxRetryMs = 1_000;
const maxLostAttempts = 4;
const maxPauseMs = 50;
/** No connection is opened for this long after one could not be opened. */
const openBackoffMs = 100;

const begin: Statement = { name: 'begin', text: 'BEGIN' };
const commit: Statement = { name: 'commit', text: 'COMMIT' };
const rollback: Statement = { name: 'rollback', text: 'ROLLBACK' };

export type BoundStatement = readonly [statement: Statement, values: readonly unknown[]];

/** Connections that serve one caller at a time. */
class ExclusiveConnections {
  readonly semaphore: Semaphore;
  readonly free: Connection[] = [];

  constructor(name: PoolLane, maxConnections: number) {
    this.semaphore = new Semaphore(name, maxConnections);
  }
}

export class Pool {
  readonly #address: Address;
  readonly #onLost: () => void;
  #hosts: readonly Host[];
  #lastAddress: string | undefined;
  readonly #all = new Set<Connection>();
  #shared: Connection[] = [];
  #opening: Promise<void> | undefined;
  #reads = 0;
  readonly #sentReads = new Semaphore('reads', maxSentReads);
  readonly #exclusive = new ExclusiveConnections('transactions', maxExclusive);
  readonly #checks = new ExclusiveConnections('checks', 1);
  #failure: { error: unknown; untilMs: number } | undefined;
  #isClosed = false;

  /** `onLost` is called when a connection is lost: the next server can have other data. */
  constructor(address: Address, onLost: () => void) {
    this.#address = address;
    this.#hosts = address.hosts;
    this.#onLost = onLost;
  }

  /** Runs a statement that only reads. Rejects with a Problem if the database does not respond. */
  async read<R extends Row>(statement: Statement<R>, values: readonly unknown[]): Promise<R[]> {
    if (this.#reads >= maxReads) throw tooManyReads();
    this.#reads++;
    try {
      return await withRetries(async () => {
        await this.#sentReads.acquire(maxReadWaitMs, tooManyReads);
        const release = () => this.#sentReads.release();
        const connection = await this.#sharedConnection().catch((error: unknown) => {
          release();
          throw error;
        });
        return connection.query(statement, values, release);
      });
    } catch (error) {
      throw problemOf(error);
    } finally {
      this.#reads--;
    }
  }

  /** Runs a health or schema check, which does not wait behind requests: an overloaded service is healthy. */
  async check<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      return await withRetries(() => this.#withConnectionOf(this.#checks, work, responseTimeoutMs));
    } catch (error) {
      throw problemOf(error);
    }
  }

  /** Runs a statement that writes and can be repeated. */
  async write(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    const [rows = []] = await this.#change([[statement, values]]);
    return rows;
  }

  /** Runs several statements that can be repeated, in one transaction. Resolves to the rows of each. */
  async transact(statements: readonly BoundStatement[]): Promise<Row[][]> {
    return (await this.#change([[begin, []], ...statements, [commit, []]])).slice(1, -1);
  }

  /** The same for statements whose rows differ if they are repeated: after a lost response, the outcome is unknown. */
  async transactOnce(statements: readonly BoundStatement[]): Promise<Row[][]> {
    const whole = [[begin, []], ...statements, [commit, []]] as const;
    return (await this.#change(whole, { canRepeat: false })).slice(1, -1);
  }

  /** Runs `first`, and then in the same transaction what `then` returns for their rows. All can be repeated. */
  async transactInTwo(
    first: readonly BoundStatement[],
    then: (rows: Row[][]) => readonly BoundStatement[],
  ): Promise<void> {
    await this.#changeWith(async (connection) => {
      try {
        const [, ...rows] = await sendAll(connection, [[begin, []], ...first]);
        await sendAll(connection, [...then(rows), [commit, []]]);
      } catch (error) {
        if (!connection.isLost) await connection.query(rollback, []);
        throw error;
      }
    });
  }

  async #change(
    statements: readonly BoundStatement[],
    { canRepeat } = { canRepeat: true },
  ): Promise<Row[][]> {
    return this.#changeWith((connection) => sendAll(connection, statements), canRepeat);
  }

  async #changeWith<T>(send: (connection: Connection) => Promise<T>, canRepeat = true): Promise<T> {
    let isOutcomeUnknown = false;
    const attempt = (connection: Connection) =>
      send(connection).catch((error: unknown) => {
        isOutcomeUnknown ||= isConnectionLost(error); // whatever happens to the next attempt
        throw isOutcomeUnknown && !canRepeat ? outcomeUnknown(error) : error;
      });
    try {
      return await withRetries(() => this.withConnection(attempt));
    } catch (error) {
      throw isOutcomeUnknown ? outcomeUnknown(error) : problemOf(error);
    }
  }

  /** Runs `work` with a connection that nothing else uses meanwhile. A connection that fails is closed. */
  async withConnection<T>(
    work: (connection: Connection) => Promise<T>,
    maxWaitMs = responseTimeoutMs,
  ): Promise<T> {
    return this.#withConnectionOf(this.#exclusive, work, maxWaitMs);
  }

  async #withConnectionOf<T>(
    { semaphore, free }: ExclusiveConnections,
    work: (connection: Connection) => Promise<T>,
    maxWaitMs: number,
  ): Promise<T> {
    await semaphore.acquire(maxWaitMs);
    try {
      let connection = free.pop();
      while (connection?.isLost === true) connection = free.pop();
      connection ??= await this.#open();
      try {
        const result = await work(connection);
        free.push(connection);
        return result;
      } catch (error) {
        if (isStatementError(error)) free.push(connection);
        else connection.destroy();
        throw error;
      }
    } finally {
      semaphore.release();
    }
  }

  /** Waits for everything in flight and closes all connections. */
  async close(): Promise<void> {
    this.#isClosed = true;
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
        .then((connection) => void (connection.isLost || this.#shared.push(connection)))
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

  /** Connects to the host that was used last, or else to the first one that accepts writes. */
  async #open(): Promise<Connection> {
    if (this.#failure !== undefined && performance.now() < this.#failure.untilMs) {
      throw this.#failure.error;
    }
    let failure: unknown;
    const failed = (error: unknown) => {
      if (failure === undefined || failure instanceof ReadOnlyServer) failure = error;
    };
    for (const host of this.#hosts) {
      for (const address of (await this.#resolveHost(host).catch(failed)) ?? []) {
        try {
          const connection = await Connection.open(this.#address, host, address);
          this.#add(connection, host, address);
          return connection;
        } catch (error) {
          failed(error);
        }
      }
    }
    this.#failure = { error: failure, untilMs: performance.now() + openBackoffMs };
    throw failure;
  }

  /** The address that was used last comes first. */
  async #resolveHost(host: Host): Promise<string[]> {
    const isLast = (address: string) => address === this.#lastAddress;
    const addresses = await resolveHost(host);
    return [...addresses.filter(isLast), ...addresses.filter((address) => !isLast(address))];
  }

  #add(connection: Connection, host: Host, address: string): void {
    // Stay with this host while it serves: another one can be a former primary.
    this.#hosts = [host, ...this.#hosts.filter((other) => other !== host)];
    this.#lastAddress = address;
    this.#all.add(connection);
    void connection.closed.then(() => this.#remove(connection));
    this.#failure = undefined;
    if (this.#isClosed) connection.destroy();
  }

  #remove(connection: Connection): void {
    this.#all.delete(connection);
    this.#shared = this.#shared.filter((other) => other !== connection);
    this.#onLost();
  }
}

function sendAll(connection: Connection, statements: readonly BoundStatement[]): Promise<Row[][]> {
  return settled(statements.map(([statement, values]) => connection.query(statement, values)));
}

/**
 * Waits for all responses, so that the connection is free, then rejects with the first error. A defect comes
 * first, because it closes the connection and so fails the other statements.
 */
export async function settled<const T extends readonly Promise<unknown>[]>(
  responses: T,
): Promise<{ -readonly [at in keyof T]: Awaited<T[at]> }> {
  let failed: PromiseRejectedResult | undefined;
  for (const result of await Promise.allSettled(responses)) {
    if (result.status === 'fulfilled') continue;
    if (failed === undefined || isDefect(result.reason)) failed = result;
  }
  if (failed !== undefined) throw failed.reason;
  return Promise.all(responses);
}

/** Retries transient failures: a lost connection or a conflict with another transaction. */
async function withRetries<T>(work: () => Promise<T>): Promise<T> {
  const deadlineMs = performance.now() + maxRetryMs;
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isConflict = isRetryable(error);
      const isTransient = isConflict || isConnectionLost(error);
      const isLastAttempt =
        performance.now() > deadlineMs || (!isConflict && attempt >= maxLostAttempts);
      if (!isTransient || isLastAttempt || error instanceof TimeoutError) throw error;
      await jitter();
    }
  }
}

/** A short random pause, so that transactions in conflict do not conflict again. */
export function jitter(): Promise<void> {
  return pause(Math.random() * maxPauseMs);
}

function tooManyReads(): Problem {
  return new Problem('overloaded', 'Too many reads are pending. Try again later.');
}
