/**
 * Writes changes to plants in transactions: the changes that arrive while others are in progress form the next one,
 * whatever their stores. A store is in one transaction at a time. Each change has its own outcome.
 */
import { randomBytes } from 'node:crypto';
import type { Change, ChangeKind, ChangeResults } from '../changes.ts';
import { commitChannel } from '../channels.ts';
import { Pending } from '../pending.ts';
import { outcomeUnknown, Problem, storageUnavailable } from '../problem.ts';
import type { Quotas } from '../quota.ts';
import { isCommitted } from './commit-check.ts';
import { sessionStatementTimeoutMs } from './connection.ts';
import {
  codeOf,
  isConnectionLost,
  isRetryable,
  isStatementError,
  problemOf,
  sqlState,
  TimeoutError,
} from './errors.ts';
import { Group } from './group.ts';
import { Lanes, maxTransactions, type Lane } from './lanes.ts';
import type { Pool } from './pool.ts';
import { jitter } from './retries.ts';
import { Transaction } from './transaction.ts';
import { WaitingChanges } from './waiting-changes.ts';

/** How long a transaction waits for the lock of a store after another of its stores has failed. */
const nextLockTimeoutMs = 10;
/** Changes that have been queued for longer are refused, and their transactions are not retried. */
const queueTimeoutMs = 4_000;
/** Changes in a transaction that takes longer are rejected with `outcome-unknown`. */
const outcomeTimeoutMs = 5_500;
/** A store that is locked is waited for until this time, so that the response comes before that. */
const lockDeadlineMs = 5_000;
/** How often both timeouts are checked. */
const timeoutPollMs = 200;
/** Maximum number of attempts to commit a transaction that conflicts with others or loses its connection. */
const maxCommitAttempts = 5;

export interface WriterOptions {
  quotas: Quotas | undefined;
  isCitus: () => boolean;
  /** Whether a transaction can have several stores: not if that needs several machines. */
  canShare: () => boolean;
}

/** The changes of one server. */
export class Writer {
  readonly #server: Pool;
  readonly #options: WriterOptions;
  readonly #waiting = new WaitingChanges();
  /** By store. */
  readonly #inFlight = new Map<number, Group>();
  readonly #lanes = new Lanes();
  /** Stores whose callers must be identified again. */
  readonly #stale = new Set<number>();
  /** Stores that have had the largest id. */
  readonly #full = new Set<number>();
  #isScheduled = false;
  /** Until all changes have an outcome. */
  #busy: { timer: NodeJS.Timeout; done: PromiseWithResolvers<void> } | undefined;
  /** Distinguishes the transactions of this process from those of others. */
  readonly #processId = randomBytes(9).toString('base64url');
  readonly #pending = new Pending<ChangeResults[ChangeKind]>();
  #attempts = 0;

  constructor(server: Pool, options: WriterOptions) {
    this.#server = server;
    this.#options = options;
  }

  /** Resolves once the change is committed. Otherwise rejects with a Problem that describes its outcome. */
  async write<C extends Change>(change: C): Promise<ChangeResults[C[0]]> {
    const [number, result] = this.#pending.add();
    this.#waiting.add({ number, change, sinceMs: performance.now() });
    this.#busy ??= {
      timer: setInterval(() => this.#rejectTimedOut(), timeoutPollMs),
      done: Promise.withResolvers(),
    };
    if (!this.#isScheduled && this.#lanes.inProgress < maxTransactions) {
      this.#isScheduled = true;
      setImmediate(() => {
        // Other changes of this event loop iteration have joined it.
        this.#isScheduled = false;
        this.#startTransactions();
      });
    }
    return (await result) as ChangeResults[C[0]]; // its number belongs to this change
  }

  /** Waits for all writes. */
  async close(): Promise<void> {
    await this.#busy?.done.promise;
  }

  #startTransactions(): void {
    const { quotas, isCitus, canShare } = this.#options;
    while (this.#lanes.inProgress < maxTransactions) {
      const taken = this.#waiting.takeNext({
        canTake: (store) => !this.#inFlight.has(store) && this.#lanes.hasRoomFor(store),
        isAlone: (store) => this.#lanes.of(store) !== 'shared' || !canShare(),
      });
      if (taken.size === 0) break;
      const groups = [...taken].map(([store, queued]) => {
        const mustCheck = this.#stale.delete(store);
        const isFull = this.#full.has(store);
        return new Group(store, queued, { quotas, isCitus: isCitus(), isFull, mustCheck });
      });
      for (const group of groups) this.#inFlight.set(group.store, group);
      // Alone, because it locks its store before all others.
      for (const group of groups) if (group.mustCheck) void this.#run([group]);
      const others = groups.filter(({ mustCheck }) => !mustCheck);
      if (others.length > 0) void this.#run(others);
    }
    if (this.#busy === undefined || this.#lanes.inProgress > 0 || !this.#waiting.isEmpty) return;
    clearInterval(this.#busy.timer);
    this.#busy.done.resolve();
    this.#busy = undefined;
  }

  /** Never rejects: each change gets its own outcome. */
  async #run(groups: readonly Group[]): Promise<void> {
    const [commonLane = 'shared'] = groups.map(({ store }) => this.#lanes.of(store));
    // A store that delays no other needs no shorter time limit, which would cost another statement.
    const isOnly = groups.length === 1 && this.#lanes.inProgress === 0;
    const lane = isOnly ? 'patient' : commonLane;
    this.#lanes.begin(lane);
    await this.#commit(groups, lane);
    this.#lanes.end(lane);
    this.#rejectTimedOut();
    this.#startTransactions();
  }

  /** Retries until the outcome of each group is known, or cannot be found out. */
  async #commit(groups: readonly Group[], lane: Lane): Promise<void> {
    const isAlone = groups.length === 1;
    let lock = this.#lanes.lockTimeoutMs(lane);
    for (let attempt = 1; groups.length > 0;) {
      const transaction = new Transaction(groups);
      const attemptId = `${this.#processId} ${++this.#attempts}`;
      try {
        const maxWaitMs = Math.min(...groups.map(deadlineOf)) - performance.now();
        await this.#server.withConnection(
          (connection) => {
            const statement = lane === 'patient' ? statementTimeoutOf(groups) : undefined;
            return transaction.commit(connection, attemptId, { lock, statement });
          },
          Math.max(0, maxWaitMs),
        );
        return this.#onCommitted(this.#withoutStale(groups));
      } catch (error) {
        const isTransient = isRetryable(error) || isConnectionLost(error);
        const isRolledBack = transaction.isRolledBack || isStatementError(error);
        groups = this.#withoutStale(groups);
        const outcome = isRolledBack ? false : await isCommitted(this.#server, groups, attemptId);
        const failed = isAlone && isTransient ? undefined : transaction.failed;
        if (failed !== undefined) {
          groups = groups.filter((group) => group !== failed);
          this.#lanes.onFailed(failed.store, isAlone);
          const canWaitLonger = lane !== 'patient' && codeOf(error) === sqlState.lockNotAvailable;
          if (outcome === false && (!isAlone || canWaitLonger)) this.#queueAgain(failed);
          else this.#reject(failed, problemOf(error));
          if (groups.length === 0) return;
          lock = nextLockTimeoutMs;
        }
        if (outcome === true) return this.#onCommitted(groups);
        if (outcome === undefined) return this.#rejectAll(groups, outcomeUnknown(error));
        if (failed === undefined) {
          if (!isTransient || attempt++ === maxCommitAttempts)
            return this.#rejectAll(groups, problemOf(error));
          await jitter();
        }
        groups = this.#withoutLate(groups, error);
      }
    }
  }

  /** Rejects groups that were rolled back and are queued for too long. Returns the others. */
  #withoutLate(groups: readonly Group[], error: unknown): readonly Group[] {
    const nowMs = performance.now();
    const isLate = (group: Group) => deadlineOf(group) < nowMs;
    this.#rejectAll(groups.filter(isLate), storageUnavailable(error));
    return groups.filter((group) => !isLate(group));
  }

  /** Queues groups again that have changed nothing, because their callers must be identified again. Returns the others. */
  #withoutStale(groups: readonly Group[]): readonly Group[] {
    const stale = groups.filter(({ isStale }) => isStale);
    for (const group of stale) {
      this.#stale.add(group.store);
      this.#queueAgain(group);
    }
    return stale.length === 0 ? groups : groups.filter(({ isStale }) => !isStale);
  }

  #onCommitted(groups: readonly Group[]): void {
    if (groups.length === 0) return;
    for (const { store, unassigned } of groups) {
      this.#inFlight.delete(store);
      this.#lanes.onCommitted(store);
      if (unassigned.length === 0) continue;
      this.#full.add(store);
      this.#waiting.addAgain(unassigned);
    }
    if (commitChannel.hasSubscribers) {
      const writes = groups.reduce((sum, { queued }) => sum + queued.length, 0);
      const sinceMs = Math.min(...groups.map((group) => group.sinceMs));
      commitChannel.publish({ writes, durationMs: performance.now() - sinceMs });
    }
    // Later, so that the next transaction is sent before the responses to this one.
    setImmediate(() => {
      for (const group of groups) this.#reportOutcomes(group);
    });
  }

  /** The group has changed nothing. Its changes are going to be in another lane, or checked. */
  #queueAgain({ store, queued }: Group): void {
    this.#inFlight.delete(store);
    this.#waiting.addAgain(queued);
    this.#startTransactions();
  }

  #reportOutcomes(group: Group): void {
    for (const [number, outcome] of group.outcomes()) {
      if (outcome instanceof Problem) this.#pending.reject(number, outcome);
      else this.#pending.resolve(number, outcome);
    }
  }

  #rejectAll(groups: readonly Group[], error: unknown): void {
    for (const group of groups) this.#reject(group, error);
  }

  #reject({ store, queued }: Group, error: unknown): void {
    this.#inFlight.delete(store);
    for (const { number } of queued) this.#pending.reject(number, error);
  }

  /** Enforces both timeouts, even if a transaction never ends. */
  #rejectTimedOut(): void {
    const nowMs = performance.now();
    for (const { number } of this.#waiting.takeBefore(nowMs - queueTimeoutMs)) {
      this.#pending.reject(number, problemOf(new TimeoutError()));
    }
    for (const { sinceMs, queued } of this.#inFlight.values()) {
      if (sinceMs >= nowMs - outcomeTimeoutMs) continue;
      for (const { number } of queued) {
        this.#pending.reject(number, outcomeUnknown(new TimeoutError()));
      }
    }
  }
}

function deadlineOf({ sinceMs }: Group): number {
  return sinceMs + queueTimeoutMs;
}

/** Undefined if the session has a shorter one. Several others that wait for the same lock add up their times. */
function statementTimeoutOf(groups: readonly Group[]): number | undefined {
  const oldestMs = Math.min(...groups.map(({ sinceMs }) => sinceMs));
  const leftMs = Math.floor(oldestMs + lockDeadlineMs - performance.now());
  return leftMs < sessionStatementTimeoutMs ? Math.max(1, leftMs) : undefined;
}
