/**
 * Writes changes to plants in transactions: the changes that arrive while others are in progress form the next one,
 * whatever their stores. A store is in one transaction at a time. Each change has its own outcome.
 */
import { randomBytes } from 'node:crypto';
import type { Change, ChangeKind, ChangeResults } from '../../plants/changes.ts';
import { commitChannel } from '../../shared/metrics.ts';
import { Pending } from '../../shared/pending.ts';
import { outcomeUnknown, Problem } from '../../problem.ts';
import type { Quotas } from '../../plants/quota.ts';
import { isCommitted } from './commit-check.ts';
import {
  isConnectionLost,
  isInternalError,
  isStatementError,
  problemOf,
  TimeoutError,
} from '../errors.ts';
import { StoreChanges, type QueuedChange } from './store-changes.ts';
import { maxTransactions, type Pool } from '../pool/pool.ts';
import { withRetries } from '../pool/retries.ts';
import { Transaction } from './transaction.ts';

/** Maximum numbers of stores in a transaction, which locks them while it takes, and of changes to each of them. */
const maxStores = 64;
const maxChanges = 512;
/** Changes that have waited longer for a transaction are refused. */
const queueTimeoutMs = 4_000;
/** Changes without an outcome after this time are refused, or have an unknown outcome if COMMIT was sent. */
const outcomeTimeoutMs = 5_500;
/** How often both timeouts are checked. */
const timeoutPollMs = 200;

export interface WriterOptions {
  quotas: Quotas | undefined;
  /** Whether a transaction can have several stores: not if that needs several machines. */
  canShare: () => boolean;
}

/** A transaction in progress, with its retries. */
interface Running {
  readonly groups: readonly StoreChanges[];
  /** Whether it waits if its only store is locked. Otherwise, stores that are locked are left out. */
  readonly canWait: boolean;
  lastAttempt?: Transaction;
}

/** The changes of one server. */
export class Writer {
  readonly #server: Pool;
  readonly #options: WriterOptions;
  readonly #pending = new Pending<ChangeResults[ChangeKind]>();
  /** By store, in the order of their turns. */
  readonly #waiting = new Map<number, QueuedChange[]>();
  /** By store. */
  readonly #inFlight = new Map<number, Running>();
  /** Number of transactions in progress that never wait for a locked store. */
  #swift = 0;
  #isScheduled = false;
  /** Until all changes have an outcome. */
  #busy: { timer: NodeJS.Timeout; done: PromiseWithResolvers<void> } | undefined;
  /** Distinguishes the transactions of this process from those of others. */
  readonly #processId = randomBytes(9).toString('base64url');
  #attempts = 0;

  constructor(server: Pool, options: WriterOptions) {
    this.#server = server;
    this.#options = options;
  }

  /** Resolves once the change is committed. Otherwise rejects with a Problem that describes its outcome. */
  async write<C extends Change>(change: C): Promise<ChangeResults[C[0]]> {
    const [number, result] = this.#pending.add();
    const [, store] = change;
    const queued = { number, change, sinceMs: performance.now() };
    const waiting = this.#waiting.get(store);
    if (waiting === undefined) this.#waiting.set(store, [queued]);
    else waiting.push(queued);
    this.#busy ??= {
      timer: setInterval(() => this.#rejectTimedOut(), timeoutPollMs),
      done: Promise.withResolvers(),
    };
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => {
        // Other changes of this event loop iteration have joined it.
        this.#isScheduled = false;
        this.#startNext();
      });
    }
    return (await result) as ChangeResults[C[0]]; // its number belongs to this change
  }

  /** Waits for all writes. */
  async close(): Promise<void> {
    await this.#busy?.done.promise;
  }

  #startNext(): void {
    while (this.#swift < maxTransactions) {
      const groups = this.#takeNext();
      if (groups.length === 0) break;
      // A store that is the only one delays no other. Its replicas wait in turn for the lock.
      void this.#run({ groups, canWait: groups.length === 1 && this.#inFlight.size === 0 });
    }
    if (this.#busy === undefined || this.#inFlight.size > 0 || this.#waiting.size > 0) return;
    clearInterval(this.#busy.timer);
    this.#busy.done.resolve();
    this.#busy = undefined;
  }

  /** Takes the changes of the stores whose turn it is. */
  #takeNext(): StoreChanges[] {
    const stores = this.#waiting
      .keys()
      .filter((store) => !this.#inFlight.has(store))
      .take(this.#options.canShare() ? maxStores : 1);
    return [...stores].map((store) => {
      const waiting = this.#waiting.get(store) ?? [];
      this.#waiting.delete(store);
      const taken = waiting.splice(0, maxChanges);
      if (waiting.length > 0) this.#waiting.set(store, waiting); // its next turn comes after all others
      return new StoreChanges(store, taken, this.#options.quotas);
    });
  }

  /** Never rejects: each change gets its own outcome. */
  async #run(running: Running): Promise<void> {
    const { groups, canWait } = running;
    for (const { store } of groups) this.#inFlight.set(store, running);
    if (!canWait) this.#swift++;
    const left = await this.#commit(running);
    if (!canWait) this.#swift--;
    for (const { store } of groups) this.#inFlight.delete(store);
    for (const group of left) void this.#run({ groups: [group], canWait: true });
    this.#startNext();
  }

  /** Returns the groups that must have a transaction of their own. The others have their outcomes. */
  async #commit(running: Running): Promise<readonly StoreChanges[]> {
    const { groups } = running;
    try {
      const committed = await withRetries(() => this.#attempt(running));
      this.#onCommitted(committed);
      return groups.filter((group) => !committed.includes(group));
    } catch (error) {
      let failed = groups;
      if (error instanceof Problem) failed = running.lastAttempt?.groups ?? groups;
      else if (groups.length > 1 && isOfStatement(error)) failed = []; // of any of the stores
      for (const group of failed) this.#reject(group.queued, problemOf(error));
      return groups.filter((group) => !failed.includes(group));
    }
  }

  /** Resolves to the groups that were committed, without those whose stores were locked. */
  async #attempt(running: Running): Promise<readonly StoreChanges[]> {
    const { groups, canWait } = running;
    const transaction = new Transaction(`${this.#processId} ${++this.#attempts}`, groups);
    running.lastAttempt = transaction;
    const deadlineMs = Math.min(...groups.map(deadlineOf));
    try {
      await this.#server.withConnection(
        (connection) => transaction.commit(connection, canWait, deadlineMs),
        Math.max(0, deadlineMs - performance.now()),
        canWait ? 'patient' : 'swift',
      );
    } catch (error) {
      if (!transaction.canBeCommitted || isStatementError(error)) throw error;
      const isDone = await isCommitted(this.#server, transaction);
      if (isDone === undefined) throw outcomeUnknown(error);
      if (!isDone) throw error;
    }
    return transaction.groups;
  }

  #onCommitted(groups: readonly StoreChanges[]): void {
    if (groups.length === 0) return;
    if (commitChannel.hasSubscribers) {
      const writes = groups.reduce((sum, { queued }) => sum + queued.length, 0);
      const sinceMs = Math.min(...groups.map((group) => group.sinceMs));
      commitChannel.publish({ writes, durationMs: performance.now() - sinceMs });
    }
    // Later, so that the next transaction is sent before the responses to this one.
    setImmediate(() => {
      for (const [number, outcome] of groups.flatMap(({ outcomes }) => [...outcomes])) {
        if (outcome instanceof Problem) this.#pending.reject(number, outcome);
        else this.#pending.resolve(number, outcome);
      }
    });
  }

  #reject(changes: readonly QueuedChange[], error: unknown): void {
    for (const { number } of changes) this.#pending.reject(number, error);
  }

  /** Enforces both timeouts, even if a transaction never ends. */
  #rejectTimedOut(): void {
    const nowMs = performance.now();
    const refused = problemOf(new TimeoutError());
    for (const [store, waiting] of this.#waiting) {
      const end = waiting.findIndex(({ sinceMs }) => sinceMs > nowMs - queueTimeoutMs);
      this.#reject(waiting.splice(0, end === -1 ? waiting.length : end), refused);
      if (waiting.length === 0) this.#waiting.delete(store);
    }
    for (const { groups, lastAttempt } of new Set(this.#inFlight.values())) {
      for (const group of groups) {
        if (nowMs < deadlineOf(group)) continue;
        const isSent = lastAttempt?.canBeCommitted === true && lastAttempt.groups.includes(group);
        this.#reject(group.queued, isSent ? outcomeUnknown(new TimeoutError()) : refused);
      }
    }
  }
}

/** After this time, COMMIT is not sent, and an outcome that is missing is unknown. */
function deadlineOf({ sinceMs }: StoreChanges): number {
  return sinceMs + outcomeTimeoutMs;
}

/** Whether the server and the connection are not to blame. */
function isOfStatement(error: unknown): boolean {
  return !isConnectionLost(error) || isInternalError(error);
}
