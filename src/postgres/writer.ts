/**
 * Writes changes to plants in groups: the changes of a store that arrive while a group is in progress form the
 * next transaction. Each change has its own outcome.
 */
import { randomBytes } from 'node:crypto';
import type { Change, ChangeKind, ChangeResults } from '../changes.ts';
import { commitChannel } from '../channels.ts';
import { Pending } from '../pending.ts';
import { outcomeUnknown, Problem } from '../problem.ts';
import type { Quotas } from '../quota.ts';
import { isConnectionLost, isRetryable, problemOf, TimeoutError } from './errors.ts';
import { Group, groupSql, isWriter } from './group.ts';
import type { Pool } from './pool.ts';
import { jitter } from './retries.ts';
import type { Freshness } from './freshness.ts';

/** Maximum number of changes in a group. */
const maxGroupChanges = 512;
/** Changes that have been queued for longer are refused, and groups are not retried. */
const queueTimeoutMs = 4_000;
/** Changes in a group that takes longer are rejected with `outcome-unknown`. */
const outcomeTimeoutMs = 5_500;
/** How often both timeouts are checked. */
const timeoutPollMs = 200;
/** Maximum number of attempts to commit a group that conflicts with others or loses its connection. */
const maxCommitAttempts = 5;
/** How long to keep checking whether a commit succeeded after its response was lost. */
const commitCheckTimeoutMs = 3_000;

interface QueuedChange {
  number: number;
  change: Change;
  sinceMs: number;
}

/** The changes of one store. */
interface Queue {
  store: number;
  waiting: QueuedChange[];
  /** The group in progress. */
  group: Group | undefined;
  /** Resolves when the queue is empty. */
  done: Promise<void>;
}

/** The changes of one server. */
export class Writer {
  readonly #server: Pool;
  readonly #freshness: Freshness;
  readonly #quotas: Quotas | undefined;
  /** By store. A queue is removed when it is empty. */
  readonly #queues = new Map<number, Queue>();
  /** Distinguishes the groups of this process from those of others. */
  readonly #processId = randomBytes(9).toString('base64url');
  readonly #pending = new Pending<ChangeResults[ChangeKind]>();
  #attempts = 0;

  constructor(server: Pool, freshness: Freshness, quotas: Quotas | undefined) {
    this.#server = server;
    this.#freshness = freshness;
    this.#quotas = quotas;
  }

  /** Resolves once the change is committed. Otherwise rejects with a Problem that describes its outcome. */
  async write<C extends Change>(change: C): Promise<ChangeResults[C[0]]> {
    const [number, result] = this.#pending.add();
    this.#enqueue({ number, change, sinceMs: performance.now() });
    return (await result) as ChangeResults[C[0]]; // its number belongs to this change
  }

  /** Waits for all writes in the queues. */
  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map(({ done }) => done));
  }

  #enqueue(queued: QueuedChange): void {
    const [, store] = queued.change;
    const queue = this.#queues.get(store);
    if (queue !== undefined) {
      queue.waiting.push(queued);
      return;
    }
    const done = Promise.withResolvers<void>();
    const added = { store, waiting: [queued], group: undefined, done: done.promise };
    this.#queues.set(store, added);
    // Other changes of this event loop iteration join the group.
    setImmediate(() => void this.#processQueue(added).then(done.resolve));
  }

  /** Never rejects: each change gets its own outcome. */
  async #processQueue(queue: Queue): Promise<void> {
    const timer = setInterval(() => this.#rejectTimedOut(queue), timeoutPollMs);
    while (queue.waiting.length > 0) {
      queue.group = nextGroup(queue, this.#quotas);
      await this.#commit(queue.group);
      queue.group = undefined;
      this.#rejectTimedOut(queue);
    }
    clearInterval(timer);
    this.#queues.delete(queue.store);
  }

  /** Retries until the outcome is known, or cannot be found out. */
  async #commit(group: Group): Promise<void> {
    const deadlineMs = group.sinceMs + queueTimeoutMs;
    for (let attempt = 1; ; attempt++) {
      const attemptId = `${this.#processId} ${++this.#attempts}`;
      group.isCommitSent = false;
      try {
        await this.#server.withConnection(
          (connection) => group.commit(connection, attemptId),
          Math.max(0, deadlineMs - performance.now()),
        );
      } catch (error) {
        const isCommitted =
          group.isCommitSent && isConnectionLost(error)
            ? await this.#isCommitted(group, attemptId)
            : false;
        if (isCommitted === undefined) return this.#reject(group, outcomeUnknown(error));
        if (!isCommitted) {
          const isTransient = isRetryable(error) || isConnectionLost(error);
          const isLastAttempt = attempt === maxCommitAttempts || performance.now() > deadlineMs;
          if (!isTransient || isLastAttempt) return this.#reject(group, problemOf(error));
          await jitter();
          continue;
        }
      }
      this.#freshness.invalidatePlants(group.store);
      if (commitChannel.hasSubscribers) {
        const { numbers, sinceMs } = group;
        commitChannel.publish({ writes: numbers.length, durationMs: performance.now() - sinceMs });
      }
      // Later, so that the next group is sent before the responses to this one.
      setImmediate(() => this.#reportOutcomes(group));
      return;
    }
  }

  /** Whether an attempt was committed after its response was lost; undefined if that cannot be found out. */
  async #isCommitted(group: Group, attemptId: string): Promise<boolean | undefined> {
    for (
      const deadlineMs = performance.now() + commitCheckTimeoutMs;
      performance.now() < deadlineMs;
      await jitter()
    ) {
      try {
        const [row] = await this.#server.withConnection((connection) =>
          connection.query(groupSql.lastGroup, [group.store, group.assignedCount]),
        );
        if (row === undefined) continue;
        const [lastId, version, writer] = row;
        if (isWriter(writer, attemptId)) {
          group.begun = { lastId, version };
          return true;
        }
        // This query waits for the row's lock, so an attempt that had begun has ended. If the version is not newer, it
        // was rolled back. Otherwise the outcome is unknown: a later group has written the row, or the attempt can still begin.
        return group.begun !== undefined && version <= group.begun.version ? false : undefined;
      } catch {
        // The server is not back yet, or another group has locked the row.
      }
    }
    return undefined;
  }

  #reportOutcomes(group: Group): void {
    for (const [number, outcome] of group.outcomes()) {
      if (outcome instanceof Problem) this.#pending.reject(number, outcome);
      else this.#pending.resolve(number, outcome);
    }
  }

  #reject({ numbers }: Group, error: unknown): void {
    for (const number of numbers) this.#pending.reject(number, error);
  }

  /** Enforces both timeouts, even if a group never ends. */
  #rejectTimedOut({ waiting, group }: Queue): void {
    const nowMs = performance.now();
    for (let [first] = waiting; first !== undefined; [first] = waiting) {
      if (first.sinceMs >= nowMs - queueTimeoutMs) break;
      waiting.shift();
      this.#pending.reject(first.number, problemOf(new TimeoutError()));
    }
    if (group !== undefined && group.sinceMs < nowMs - outcomeTimeoutMs) {
      this.#reject(group, outcomeUnknown(new TimeoutError()));
    }
  }
}

/** Removes a group from the queue. No two of its changes have the same id, because a group runs them by kind. */
function nextGroup({ store, waiting }: Queue, quotas: Quotas | undefined): Group {
  const ids = new Set<number>();
  const changes = new Map<number, Change>();
  const sinceMs = waiting[0]?.sinceMs ?? 0;
  for (const { number, change } of waiting) {
    const [, , , id] = change;
    if (changes.size === maxGroupChanges || (id !== undefined && ids.has(id))) break;
    if (id !== undefined) ids.add(id);
    changes.set(number, change);
  }
  waiting.splice(0, changes.size);
  return new Group(store, changes, sinceMs, quotas);
}
