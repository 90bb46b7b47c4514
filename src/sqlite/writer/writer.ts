/**
 * Group commit on a separate thread: writes that arrive while a commit is in progress share the next one. So
 * the event loop never waits for a sync.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Change, ResultOfChange } from '../../plants/changes.ts';
import { commitChannel } from '../../shared/metrics.ts';
import {
  maxPendingWrites,
  outcomeUnknown,
  Problem,
  storageUnavailable,
  tooManyWrites,
} from '../../problem.ts';
import type { ResultOf } from '../../sql/write.ts';
import type { Writes } from '../../sql/named-writes.ts';
import { nowMs } from '../file/locks.ts';
import {
  isFailure,
  pack,
  type DiskFailed,
  type Outcomes,
  type Batch,
  type Call,
  type ThreadData,
  type Write,
} from './messages.ts';

/** Maximum number of writes in a message. Writes that are requested before the next tick share one. */
const maxBatchWrites = 16;
/** A write without an outcome after this time fails with `outcome-unknown`. Includes waiting for a lock. */
const outcomeTimeoutMs = 20_000;

// TypeScript in a checkout, JavaScript in the published package.
const threadFile = new URL(`./thread${extname(import.meta.filename)}`, import.meta.url);

interface PendingWrite {
  /** When it was requested, on the clock of performance.now(). */
  sinceMs: number;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

export class Writer {
  readonly #data: ThreadData;
  readonly #onDiskFailure: (cause: unknown) => void;
  #diskFailure: unknown;
  #thread: Worker | undefined;
  /** The writes without an outcome, in ascending order of their numbers. An outcome for any other number is ignored. */
  readonly #pending = new Map<number, PendingWrite>();
  #lastNumber = 0;
  /** Writes of this event loop iteration, and the number of the first one. */
  #unsent: Write[] = [];
  #firstUnsent = 0;

  /** `onDiskFailure` is called once, if a sync fails: all later writes are refused. */
  constructor(data: ThreadData, onDiskFailure: (cause: unknown) => void) {
    this.#data = data;
    this.#onDiskFailure = onDiskFailure;
  }

  change<C extends Change>(change: C): Promise<ResultOfChange<C>> {
    return this.write(pack(change)) as Promise<ResultOfChange<C>>; // the result of this change
  }

  call<Name extends keyof Writes>(
    ...call: readonly [name: Name, ...args: Parameters<Writes[Name]>]
  ): Promise<ResultOf<Name>> {
    return this.write(['call', ...call] as unknown as Call) as Promise<ResultOf<Name>>; // of this write
  }

  /** Resolves when the write is on disk. Rejects with a Problem that shows whether anything has changed. */
  async write(write: Write): Promise<unknown> {
    if (this.#diskFailure !== undefined) throw storageUnavailable(this.#diskFailure);
    if (this.#pending.size >= maxPendingWrites) throw tooManyWrites();
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#pending.set(++this.#lastNumber, { sinceMs: performance.now(), resolve, reject });
    if (this.#unsent.length === 0) {
      this.#firstUnsent = this.#lastNumber;
      process.nextTick(() => this.#flush());
    }
    if (this.#unsent.push(write) === maxBatchWrites) this.#flush();
    return promise;
  }

  /** Starts the thread, which the first write would do otherwise. */
  start(): void {
    this.#thread ??= this.#startThread();
  }

  /** Waits for all pending writes, then ends the thread. */
  async close(): Promise<void> {
    this.#flush();
    const thread = this.#thread;
    if (thread === undefined) return;
    const ended = new Promise((resolve) => thread.once('exit', resolve));
    thread.postMessage('close'); // it completes all earlier messages first
    await ended;
  }

  #flush(): void {
    if (this.#unsent.length === 0) return;
    const [first, writes] = [this.#firstUnsent, this.#unsent];
    this.#unsent = [];
    try {
      this.start();
      const batch: Batch = { sentMs: nowMs(), first, writes };
      this.#thread?.postMessage(batch);
    } catch (error) {
      // The thread could not be started, so nothing was sent.
      const problem = storageUnavailable(error);
      for (const at of writes.keys()) this.#reject(first + at, problem);
    }
  }

  #startThread(): Worker {
    const thread = new Worker(threadFile, { workerData: this.#data });
    const onLost = (cause: unknown) => {
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      this.#rejectSent(cause);
    };
    thread.on('message', (message: Outcomes | DiskFailed) => {
      if (!('diskFailure' in message)) return this.#reportOutcomes(message);
      this.#diskFailure = message.diskFailure;
      this.#onDiskFailure(message.diskFailure);
    });
    thread.on('error', onLost);
    thread.on('exit', (code) => onLost(new Error(`the writer thread exited with code ${code}`)));
    return thread;
  }

  /** Nobody knows which writes a lost thread has committed, unless it could not start. */
  #rejectSent(cause: unknown): void {
    const couldNotStart =
      cause instanceof Error && 'code' in cause && cause.code === 'ERR_WORKER_INIT_FAILED';
    const problem = couldNotStart ? storageUnavailable(cause) : outcomeUnknown(cause);
    for (const number of this.#pending.keys()) {
      if (this.#unsent.length > 0 && number >= this.#firstUnsent) return;
      this.#reject(number, problem);
    }
  }

  #reportOutcomes(outcomes: Outcomes): void {
    const [oldest = 0] = outcomes.keys();
    const sinceMs = this.#pending.get(oldest)?.sinceMs ?? performance.now();
    for (const [first, results] of outcomes) {
      for (const [at, result] of results.entries()) this.#report(first + at, result);
    }
    const all = commitChannel.hasSubscribers ? [...outcomes.values()].flat() : [];
    if (all.every(isFailure)) return;
    commitChannel.publish({ writes: all.length, durationMs: performance.now() - sinceMs });
  }

  #report(number: number, outcome: unknown): void {
    if (isFailure(outcome)) {
      const { kind, detail, ...more } = outcome.problem;
      return this.#reject(number, new Problem(kind, detail, more));
    }
    this.#pending.get(number)?.resolve(outcome);
    this.#pending.delete(number);
  }

  #reject(number: number, error: unknown): void {
    this.#pending.get(number)?.reject(error);
    this.#pending.delete(number);
  }

  /**
   * Call it regularly: a disk that hangs must not block requests forever. Overdue writes count as pending until their
   * outcomes arrive, so that such a disk accumulates no writes.
   */
  rejectOverdue(): void {
    const problem = outcomeUnknown(new Error(`the write took more than ${outcomeTimeoutMs} ms`));
    const beforeMs = performance.now() - outcomeTimeoutMs;
    for (const { sinceMs, reject } of this.#pending.values()) {
      if (sinceMs >= beforeMs) return;
      reject(problem);
    }
  }
}
