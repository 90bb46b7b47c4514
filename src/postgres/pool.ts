/**
 * The connections of this process: some that all reads share, some that a transaction has for itself,
 * and one for health checks. They are made when they are needed; one that is lost is replaced by the
 * next use.
 */
import { channel } from 'node:diagnostics_channel';
import { setTimeout as pause } from 'node:timers/promises';
import { outcomeUnknown, Problem } from '../problem.ts';
import { addressesOf, type Address, type Host } from './address.ts';
import { Connection, type Row, type Statement } from './connection.ts';
import {
  isAnswer,
  isDefect,
  isLoss,
  isWorthRetrying,
  problemOf,
  ReadOnlyServer,
  TooSlow,
} from './errors.ts';
import { answerMsMax } from './in-time.ts';

/** Connections of each process: no more than these, and fewer where there is less to do. */
const sharedMax = 4;
const ownMax = 4;
/** Reads under way on a connection that make it worth to have another one. */
const busyReads = 8;
/** Reads that may be under way at a time; one more is refused at once. */
const readsMax = 2_048;
/**
 * Reads that have been sent and not answered. Others wait here, for so long: what was sent is worked off
 * even if nobody waits for it any more, and everything after it would come too late as well.
 */
const sentReadsMax = 128;
const readWaitMsMax = 2_000;
/**
 * For how long something is tried that failed for a passing reason, with what longest pause. A conflict with
 * others is tried as often as that allows, because one of them has got further; a lost connection is not.
 */
const retryMsMax = 1_000;
const lostAttemptsMax = 4;
const pauseMsMax = 50;
/** After a connection could not be made, others are not even tried for so long. */
const restMs = 100;

/**
 * For metrics, after each change: `{ lane, busy, waiting }`. In the lane `reads`, reads are busy that have been
 * sent; in `own` and `checks`, connections are, with transactions and with health checks.
 */
const turnsChanged = channel('plant-store:pool');

const begin: Statement = { name: 'begin', text: 'BEGIN' };
const commit: Statement = { name: 'commit', text: 'COMMIT' };

/** A statement and its values. */
export type Step = readonly [statement: Statement, values: readonly unknown[]];

/** Connections that are each used by one at a time. */
class Lane {
  readonly turns: Turns;
  readonly free: Connection[] = [];

  constructor(name: string, connectionsMax: number) {
    this.turns = new Turns(name, connectionsMax);
  }
}

export class Pool {
  readonly #address: Address;
  readonly #onLost: () => void;
  #hosts: readonly Host[];
  #lastAddress: string | undefined;
  readonly #all = new Set<Connection>();
  #shared: Connection[] = [];
  #dialing: Promise<void> | undefined;
  #reads = 0;
  readonly #sentReads = new Turns('reads', sentReadsMax);
  readonly #own = new Lane('own', ownMax);
  readonly #checks = new Lane('checks', 1);
  #failure: { error: unknown; untilMs: number } | undefined;
  #isClosed = false;

  /** `onLost` is called when a connection is lost: what was read before may not hold any more. */
  constructor(address: Address, onLost: () => void) {
    this.#address = address;
    this.#hosts = address.hosts;
    this.#onLost = onLost;
  }

  /** Runs a statement that only reads. Rejects with a Problem where the database cannot answer. */
  async read<R extends Row>(statement: Statement<R>, values: readonly unknown[]): Promise<R[]> {
    if (this.#reads >= readsMax) throw tooManyReads();
    this.#reads++;
    try {
      return await repeatedly(async () => {
        await this.#sentReads.take(readWaitMsMax, tooManyReads);
        const giveBack = () => this.#sentReads.giveBack();
        const connection = await this.#sharedOne().catch((error: unknown) => {
          giveBack();
          throw error;
        });
        return connection.query(statement, values, giveBack);
      });
    } catch (error) {
      throw problemOf(error);
    } finally {
      this.#reads--;
    }
  }

  /** Reads for a health check, which does not wait behind requests: overloaded is not down. */
  async check<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      return await repeatedly(() => this.#lend(this.#checks, work, answerMsMax));
    } catch (error) {
      throw problemOf(error);
    }
  }

  /** Runs a statement that changes the same, be it once or twice. */
  async write(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    const [rows = []] = await this.#change([[statement, values]]);
    return rows;
  }

  /** The same with several: all of them or none. */
  async transact(steps: readonly Step[]): Promise<void> {
    await this.#change([[begin, []], ...steps, [commit, []]]);
  }

  async #change(steps: readonly Step[]): Promise<Row[][]> {
    let mayBeDone = false;
    const send = async (connection: Connection) => {
      const answers = steps.map(([statement, values]) => connection.query(statement, values));
      return settled(answers).catch((error: unknown) => {
        mayBeDone ||= isLoss(error); // and stays so, however the next attempt ends
        throw error;
      });
    };
    try {
      return await repeatedly(() => this.lend(send));
    } catch (error) {
      throw mayBeDone ? outcomeUnknown(error) : problemOf(error);
    }
  }

  /** Lends a connection that nobody else uses meanwhile. One that fails is not used again. */
  async lend<T>(work: (connection: Connection) => Promise<T>, waitMsMax = answerMsMax): Promise<T> {
    return this.#lend(this.#own, work, waitMsMax);
  }

  async #lend<T>(
    { turns, free }: Lane,
    work: (connection: Connection) => Promise<T>,
    waitMsMax: number,
  ): Promise<T> {
    await turns.take(waitMsMax);
    try {
      let connection = free.pop();
      while (connection?.isLost === true) connection = free.pop();
      connection ??= await this.#dial();
      try {
        const result = await work(connection);
        free.push(connection);
        return result;
      } catch (error) {
        if (isAnswer(error)) free.push(connection);
        else connection.destroy();
        throw error;
      }
    } finally {
      turns.giveBack();
    }
  }

  /** Waits for what is under way and ends all connections. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#all].map((connection) => connection.close()));
  }

  /** The one with the least to do; another is made where all have much to do. */
  async #sharedOne(): Promise<Connection> {
    let least = this.#leastBusy();
    const isEnough =
      least !== undefined && (least.underWay < busyReads || this.#shared.length >= sharedMax);
    if (!isEnough) {
      this.#dialing ??= this.#dial()
        .then((connection) => void (connection.isLost || this.#shared.push(connection)))
        .finally(() => (this.#dialing = undefined));
      if (least === undefined) await this.#dialing;
      else this.#dialing.catch(() => {}); // those that are there will do
      least ??= this.#leastBusy();
    }
    if (least === undefined) throw new TooSlow(); // it is lost again already
    return least;
  }

  #leastBusy(): Connection | undefined {
    let least: Connection | undefined;
    for (const connection of this.#shared) {
      if (connection.isLost) continue;
      if (least === undefined || connection.underWay < least.underWay) least = connection;
    }
    return least;
  }

  /** Connects to the host that was used last, or the first other one that takes writes. */
  async #dial(): Promise<Connection> {
    if (this.#failure !== undefined && performance.now() < this.#failure.untilMs) {
      throw this.#failure.error;
    }
    let failure: unknown;
    const failed = (error: unknown) => {
      if (failure === undefined || failure instanceof ReadOnlyServer) failure = error;
    };
    for (const host of this.#hosts) {
      for (const address of (await this.#addressesOf(host).catch(failed)) ?? []) {
        try {
          const connection = await Connection.open(this.#address, host, address);
          this.#use(connection, host, address);
          return connection;
        } catch (error) {
          failed(error);
        }
      }
    }
    this.#failure = { error: failure, untilMs: performance.now() + restMs };
    throw failure;
  }

  /** The one that was used last comes first. */
  async #addressesOf(host: Host): Promise<string[]> {
    const isLast = (address: string) => address === this.#lastAddress;
    const addresses = await addressesOf(host);
    return [...addresses.filter(isLast), ...addresses.filter((one) => !isLast(one))];
  }

  #use(connection: Connection, host: Host, address: string): void {
    // Not away from it as long as it serves: another may be a primary of the past.
    this.#hosts = [host, ...this.#hosts.filter((one) => one !== host)];
    this.#lastAddress = address;
    this.#all.add(connection);
    void connection.loss.then(() => this.#forget(connection));
    this.#failure = undefined;
    if (this.#isClosed) connection.destroy();
  }

  #forget(connection: Connection): void {
    this.#all.delete(connection);
    this.#shared = this.#shared.filter((one) => one !== connection);
    this.#onLost();
  }
}

/**
 * Waits for all answers, so that the connection is free, and then rejects with the first error; or with a
 * defect, because that ends the connection, and the other statements with it.
 */
export async function settled<const T extends readonly Promise<unknown>[]>(
  answers: T,
): Promise<{ -readonly [at in keyof T]: Awaited<T[at]> }> {
  let failed: PromiseRejectedResult | undefined;
  for (const one of await Promise.allSettled(answers)) {
    if (one.status === 'rejected' && (failed === undefined || isDefect(one.reason))) failed = one;
  }
  if (failed !== undefined) throw failed.reason;
  return Promise.all(answers);
}

/** Tries again what failed for a passing reason: a lost connection, a conflict with others. */
async function repeatedly<T>(work: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + retryMsMax;
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isConflict = isWorthRetrying(error);
      const isPassing = isConflict || isLoss(error);
      const isOver = performance.now() > endMs || (!isConflict && attempt >= lostAttemptsMax);
      if (!isPassing || isOver || error instanceof TooSlow) throw error;
      await jitter();
    }
  }
}

/** A short pause of random length, so that those who met do not meet again. */
export function jitter(): Promise<void> {
  return pause(Math.random() * pauseMsMax);
}

function tooManyReads(): Problem {
  return new Problem('overloaded', 'Too many reads wait for their turn.');
}

/** So many at a time; others wait for their turn, in order and not for ever. */
class Turns {
  readonly #lane: string;
  readonly #count: number;
  #left: number;
  readonly #waiting = new Set<() => void>();

  constructor(lane: string, count: number) {
    this.#lane = lane;
    this.#count = count;
    this.#left = count;
  }

  async take(waitMsMax: number, late: () => Error = () => new TooSlow()): Promise<void> {
    if (this.#left > 0) {
      this.#left--;
      this.#publish();
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    this.#publish();
    const timer = setTimeout(() => {
      this.#waiting.delete(resolve);
      this.#publish();
      reject(late());
    }, waitMsMax);
    await promise.finally(() => clearTimeout(timer));
  }

  giveBack(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#left++;
    } else {
      this.#waiting.delete(next);
      next();
    }
    this.#publish();
  }

  #publish(): void {
    if (!turnsChanged.hasSubscribers) return;
    const [lane, busy, waiting] = [this.#lane, this.#count - this.#left, this.#waiting.size];
    turnsChanged.publish({ lane, busy, waiting });
  }
}
