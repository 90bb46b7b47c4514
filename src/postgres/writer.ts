/**
 * Changes to plants, in groups: all of one store that came while the group before was in progress make
 * the next transaction. Each keeps an outcome of its own.
 */
import { randomBytes } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import type { Change, ChangeKind, ChangeResults } from '../changes.ts';
import { Pending } from '../pending.ts';
import { outcomeUnknown, Problem } from '../problem.ts';
import { isConnectionLost, isRetryable, problemOf, TimeoutError } from './errors.ts';
import { Group, groupSql } from './group.ts';
import { jitter, type Pool } from './pool.ts';
import type { Freshness } from './freshness.ts';

/** Writes of one transaction. */
const groupMax = 512;
/** Writes that have waited for longer are not begun. */
const waitMsMax = 4_000;
/** And those that were are told by then, though nobody knows their outcome yet. */
const outcomeTimeoutMs = 5_500;
/** How often it is looked for such. */
const sweepMs = 200;
/** How often a transaction is begun that conflicts with others or loses its connection. */
const attemptsMax = 5;
/** How long is asked whether a commit came through, whose answer was lost. */
const commitCheckMsMax = 3_000;

/** For metrics, after each commit: `{ writes, durationMs }`, from when the first of them came. */
const committed = channel('plant-store:commit');

interface Waiting {
  number: number;
  change: Change;
  sinceMs: number;
}

/** The changes of one store that wait for their turn. */
interface Queue {
  store: number;
  waiting: Waiting[];
  /** What is on its way. */
  group: Group | undefined;
  /** Resolves when nothing waits any more. */
  done: Promise<void>;
}

export class Writer {
  readonly #pool: Pool;
  readonly #freshness: Freshness;
  /** By store, as long as there is something to do. */
  readonly #queues = new Map<number, Queue>();
  /** Tells the groups of this process from those of others. */
  readonly #name = randomBytes(9).toString('base64url');
  readonly #pending = new Pending<ChangeResults[ChangeKind]>();
  #attempts = 0;

  constructor(pool: Pool, freshness: Freshness) {
    this.#pool = pool;
    this.#freshness = freshness;
  }

  /** Resolves once the change is committed; rejects with a Problem that says what became of it. */
  async write<C extends Change>(change: C): Promise<ChangeResults[C[0]]> {
    const [number, result] = this.#pending.add();
    this.#enqueue({ number, change, sinceMs: performance.now() });
    return (await result) as ChangeResults[C[0]]; // of this very change
  }

  /** Waits for every write that was taken. */
  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map(({ done }) => done));
  }

  #enqueue(waiting: Waiting): void {
    const [, store] = waiting.change;
    const queue = this.#queues.get(store);
    if (queue !== undefined) {
      queue.waiting.push(waiting);
      return;
    }
    const done = Promise.withResolvers<void>();
    const own = { store, waiting: [waiting], group: undefined, done: done.promise };
    this.#queues.set(store, own);
    // Those of this turn of the event loop go along.
    setImmediate(() => void this.#work(own).then(done.resolve));
  }

  /** Never rejects: each write is told its own outcome. */
  async #work(queue: Queue): Promise<void> {
    const timer = setInterval(() => this.#rejectLate(queue), sweepMs);
    while (queue.waiting.length > 0) {
      queue.group = nextGroup(queue);
      await this.#settle(queue.group);
      queue.group = undefined;
      this.#rejectLate(queue);
    }
    clearInterval(timer);
    this.#queues.delete(queue.store);
  }

  /** Tries until the outcome is known, or is not to be known. */
  async #settle(group: Group): Promise<void> {
    const endMs = group.sinceMs + waitMsMax;
    for (let attempt = 1; ; attempt++) {
      const writer = `${this.#name} ${++this.#attempts}`;
      let isSent = false;
      try {
        await this.#pool.withConnection(
          (connection) => {
            isSent = true;
            return group.commit(connection, writer);
          },
          Math.max(0, endMs - performance.now()),
        );
      } catch (error) {
        const isCommitted =
          isSent && isConnectionLost(error) ? await this.#ask(group, writer) : false;
        if (isCommitted === undefined) return this.#reject(group, outcomeUnknown(error));
        if (!isCommitted) {
          const isPassing = isRetryable(error) || isConnectionLost(error);
          const isOver = attempt === attemptsMax || performance.now() > endMs;
          if (!isPassing || isOver) return this.#reject(group, problemOf(error));
          await jitter();
          continue;
        }
      }
      this.#freshness.changed(group.store);
      if (committed.hasSubscribers) {
        const { numbers, sinceMs } = group;
        committed.publish({ writes: numbers.length, durationMs: performance.now() - sinceMs });
      }
      // Later, so that the next group is on its way before those of this one are answered.
      setImmediate(() => this.#report(group));
      return;
    }
  }

  /** Whether an attempt came through, whose answer was lost; undefined where nobody can tell. */
  async #ask(group: Group, writer: string): Promise<boolean | undefined> {
    for (
      const endMs = performance.now() + commitCheckMsMax;
      performance.now() < endMs;
      await jitter()
    ) {
      try {
        const [row] = await this.#pool.withConnection((connection) =>
          connection.query(groupSql.lastGroup, [group.store, group.assigned]),
        );
        if (row === undefined) continue;
        const [id, version, lastWriter] = row;
        if (lastWriter === writer) {
          group.last = { id, version };
          return true;
        }
        // It had the row locked, so it is over by now: if it is not there and nobody came after
        // it, it has failed. Where it had not, the server may not even have begun it.
        return group.last !== undefined && version <= group.last.version ? false : undefined;
      } catch {
        // The server is not back yet, or another holds the row.
      }
    }
    return undefined;
  }

  #report(group: Group): void {
    for (const [number, outcome] of group.outcomes()) {
      if (outcome instanceof Problem) this.#pending.reject(number, outcome);
      else this.#pending.resolve(number, outcome);
    }
  }

  #reject({ numbers }: Group, error: unknown): void {
    for (const number of numbers) this.#pending.reject(number, error);
  }

  /** Those who have waited for too long: there may be no end to it. */
  #rejectLate({ waiting, group }: Queue): void {
    const nowMs = performance.now();
    for (let [first] = waiting; first !== undefined; [first] = waiting) {
      if (first.sinceMs >= nowMs - waitMsMax) break;
      waiting.shift();
      this.#pending.reject(first.number, problemOf(new TimeoutError()));
    }
    if (group !== undefined && group.sinceMs < nowMs - outcomeTimeoutMs) {
      this.#reject(group, outcomeUnknown(new TimeoutError()));
    }
  }
}

/** The first of the queue, of which no two name the same plant: the order of such is up to the database. */
function nextGroup({ store, waiting }: Queue): Group {
  const ids = new Set<number>();
  const changes = new Map<number, Change>();
  const sinceMs = waiting[0]?.sinceMs ?? 0;
  for (const { number, change } of waiting) {
    const [, , , id] = change;
    if (changes.size === groupMax || (id !== undefined && ids.has(id))) break;
    if (id !== undefined) ids.add(id);
    changes.set(number, change);
  }
  waiting.splice(0, changes.size);
  return new Group(store, changes, sinceMs);
}
