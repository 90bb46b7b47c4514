/**
 * Writes in transactions: the writes that arrive while others are in progress form the next one, whatever their stores. A
 * store is in one transaction at a time, with changes to its plants or with one other write. Each has its own outcome.
 */
import { randomBytes } from 'node:crypto';
import { countCommit, metrics } from '../../metrics/metrics.ts';
import type { Change } from '../../plants/changes.ts';
import type { WriteSettings } from '../../storage.ts';
import {
  maxPendingWrites,
  outcomeUnknown,
  Problem,
  storageUnavailable,
  tooManyWrites,
} from '../../problem.ts';
import {
  codeOf,
  isConnectionLost,
  isInternalError,
  isRetryable,
  isStatementError,
  problemOf,
  sqlState,
  TimeoutError,
} from '../errors.ts';
import type { Write } from '../../sql/write.ts';
import { Group, isChange, outcomeTimeoutMs, type QueuedWrite } from './group.ts';
import { maxTransactions, type Pool } from '../pool/pool.ts';
import { withRetries } from '../pool/retries.ts';
import { Transaction } from './transaction.ts';

/** Maximum number of stores in a transaction, which locks them while it runs, and of changes to each store. */
const maxStores = 64;
const maxChanges = 512;

/** The writes of one server. */
export class Writer {
  readonly #server: Pool;
  readonly #settings: WriteSettings;
  readonly #canShare: () => boolean;
  /** All writes without an outcome, in the order of their arrival. */
  readonly #pending = new Set<QueuedWrite>();
  /** By store, in the order of their turns. */
  readonly #waiting = new Map<number, QueuedWrite[]>();
  /** The stores of the transactions in progress. */
  readonly #inFlight = new Set<number>();
  /** Number of transactions in progress that never wait for a locked store. */
  #swift = 0;
  #isScheduled = false;
  /** Until the first pending change is overdue. */
  #timer: NodeJS.Timeout | undefined;
  /** Distinguishes the transactions of this process from those of others. */
  readonly #processId = randomBytes(9).toString('base64url');
  #attempts = 0;

  /** `canShare` returns whether a transaction can have several stores, without involving several machines. */
  constructor(server: Pool, settings: WriteSettings, canShare: () => boolean) {
    this.#server = server;
    this.#settings = settings;
    this.#canShare = canShare;
  }

  /** Resolves to the result once the write is committed. Otherwise rejects with a Problem that describes its outcome. */
  async write(store: number, write: Change | Write): Promise<unknown> {
    if (this.#pending.size >= maxPendingWrites) throw tooManyWrites();
    const queued: QueuedWrite = {
      write,
      sinceMs: performance.now(),
      outcome: Promise.withResolvers(),
      isDecided: false,
    };
    this.#pending.add(queued);
    metrics.plant_store_pending_writes++;
    const waiting = this.#waiting.get(store);
    if (waiting === undefined) this.#waiting.set(store, [queued]);
    else waiting.push(queued);
    this.#timer ??= setTimeout(() => this.#rejectOverdue(), outcomeTimeoutMs);
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => {
        // Other writes of this event loop iteration have joined it.
        this.#isScheduled = false;
        this.#startNext();
      });
    }
    try {
      return await queued.outcome.promise;
    } finally {
      this.#pending.delete(queued);
      metrics.plant_store_pending_writes--;
    }
  }

  /** Waits for all pending writes. */
  async close(): Promise<void> {
    await Promise.allSettled(Array.from(this.#pending, ({ outcome }) => outcome.promise));
    clearTimeout(this.#timer);
  }

  #startNext(): void {
    while (this.#swift < maxTransactions) {
      const groups = this.#takeNext();
      if (groups.length === 0) return;
      // If there is only one store, waiting for its lock delays no other, and replicas get the lock in turn.
      void this.#run(groups, groups.length === 1 && this.#inFlight.size === 0);
    }
  }

  /** Takes the writes of the stores whose turn it is. */
  #takeNext(): Group[] {
    const stores = this.#waiting
      .keys()
      .filter((store) => !this.#inFlight.has(store))
      .take(this.#canShare() ? maxStores : 1);
    return [...stores].map((store) => {
      const waiting = this.#waiting.get(store) ?? [];
      this.#waiting.delete(store);
      const changes = waiting.findIndex(({ write }, at) => at === maxChanges || !isChange(write));
      const taken = waiting.splice(0, changes === -1 ? waiting.length : Math.max(changes, 1));
      if (waiting.length > 0) this.#waiting.set(store, waiting); // its next turn comes after all others
      return new Group(store, taken, this.#settings);
    });
  }

  /**
   * Never rejects: each write gets its own outcome. A transaction that `canWait` waits if its only store is locked.
   * Otherwise, stores that are locked are left out.
   */
  async #run(groups: readonly Group[], canWait: boolean): Promise<void> {
    for (const { store } of groups) this.#inFlight.add(store);
    if (!canWait) this.#swift++;
    const left = await this.#commit(groups, canWait);
    if (!canWait) this.#swift--;
    for (const { store } of groups) this.#inFlight.delete(store);
    for (const group of left) void this.#run([group], true);
    this.#startNext();
  }

  /** Returns the groups that must have a transaction of their own. The others have their outcomes. */
  async #commit(groups: readonly Group[], canWait: boolean): Promise<readonly Group[]> {
    let done: readonly Group[] = groups;
    try {
      const work = async () => {
        const transaction = new Transaction(`${this.#processId} ${++this.#attempts}`, groups);
        try {
          await this.#attempt(transaction, canWait);
        } finally {
          done = transaction.groups; // without those whose stores were locked
        }
        this.#onCommitted(transaction);
      };
      await withRetries(work, { isConflict });
    } catch (error) {
      const isOfStatement = !isConnectionLost(error) || isInternalError(error);
      if (!(error instanceof Problem)) done = groups.length > 1 && isOfStatement ? [] : groups;
      for (const { outcome } of done.flatMap(({ queued }) => queued)) {
        outcome.reject(problemOf(error));
      }
    }
    return groups.filter((group) => !done.includes(group));
  }

  async #attempt(transaction: Transaction, canWait: boolean): Promise<void> {
    try {
      await this.#server.withConnection(
        (connection) => transaction.commit(connection, canWait),
        canWait ? 'patient' : 'swift',
      );
    } catch (error) {
      if (!transaction.canBeCommitted || isStatementError(error)) throw error;
      const isDone = await transaction.isCommitted(this.#server);
      if (isDone === undefined) throw outcomeUnknown(error);
      if (!isDone) throw error;
    }
  }

  #onCommitted({ groups }: Transaction): void {
    if (groups.length === 0) return;
    const writes = groups.reduce((sum, { queued }) => sum + queued.length, 0);
    countCommit(writes, Math.min(...groups.map(({ sinceMs }) => sinceMs)));
    // Later, so that the next transaction is sent before the responses to this one.
    setImmediate(() => {
      for (const [{ outcome }, result] of groups.flatMap(({ outcomes }) => [...outcomes])) {
        if (result instanceof Problem) outcome.reject(result);
        else outcome.resolve(result);
      }
    });
  }

  /** Enforces the time limit, even if a transaction never ends. */
  #rejectOverdue(): void {
    this.#timer = undefined;
    const latestMs = performance.now() - outcomeTimeoutMs;
    for (const { sinceMs, isDecided, outcome } of this.#pending) {
      if (sinceMs > latestMs) {
        this.#timer = setTimeout(() => this.#rejectOverdue(), sinceMs - latestMs);
        return;
      }
      const timedOut = new TimeoutError();
      outcome.reject(isDecided ? outcomeUnknown(timedOut) : storageUnavailable(timedOut));
    }
  }
}

/** Another program can also have used an id meanwhile (`create` in statements.ts). */
function isConflict(error: unknown): boolean {
  return isRetryable(error) || codeOf(error) === sqlState.notNullViolation;
}
