/**
 * Group commit on a separate thread: writes that arrive while a commit is in progress share the next one. So
 * the event loop never waits for a sync.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { countCommit, metrics } from '../../metrics/metrics.ts';
import type { Change, ChangeResults } from '../../plants/changes.ts';
import {
  maxPendingWrites,
  outcomeUnknown,
  Problem,
  storageUnavailable,
  tooManyWrites,
} from '../../problem.ts';
import type { Writes } from '../../sql/named-writes.ts';
import type { ResultOf } from '../../sql/write.ts';
import { nowMs } from '../file/locks.ts';
import {
  isFailure,
  pack,
  type Batch,
  type Call,
  type DiskFailed,
  type Outcomes,
  type ThreadData,
  type Write,
} from './messages.ts';

/** Maximum number of writes in a message. Writes that are requested before the next tick share one. */
const maxBatchWrites = 16;
/** A write without an outcome after this time fails with `outcome-unknown`. Includes waiting for a lock. */
const outcomeTimeoutMs = 20_000;

// TypeScript in a checkout, JavaScript in the published package.
const threadFile = new URL(`./thread${extname(import.meta.filename)}`, import.meta.url);

interface PendingWrite extends PromiseWithResolvers<unknown> {
  readonly write: Write;
}

export class Writer {
  readonly #data: ThreadData;
  readonly #onDiskFailure: (cause: unknown) => void;
  #diskFailure: unknown;
  #thread: Worker | undefined;
  /** The number of writes without an outcome. */
  #pending = 0;
  /** Those of this event loop iteration. */
  #unsent: PendingWrite[] = [];
  /** The messages with the others. The thread responds in the same order. */
  #sent: { readonly sinceMs: number; readonly writes: readonly PendingWrite[] }[] = [];

  /** `onDiskFailure` is called once, if a sync fails: all later writes are refused. */
  constructor(data: ThreadData, onDiskFailure: (cause: unknown) => void) {
    this.#data = data;
    this.#onDiskFailure = onDiskFailure;
  }

  change<C extends Change>(change: C): Promise<ChangeResults[C['kind']]> {
    return this.write(pack(change)) as Promise<ChangeResults[C['kind']]>; // the result of this change
  }

  call<Name extends keyof Writes>(
    ...call: readonly [name: Name, ...args: Parameters<Writes[Name]>]
  ): Promise<ResultOf<Name>> {
    return this.write(['call', ...call] as unknown as Call) as Promise<ResultOf<Name>>; // of this write
  }

  /** Resolves when the write is on disk. Rejects with a Problem that shows whether anything has changed. */
  async write(write: Write): Promise<unknown> {
    if (this.#diskFailure !== undefined) throw storageUnavailable(this.#diskFailure);
    if (this.#pending >= maxPendingWrites) throw tooManyWrites();
    this.#pending++;
    metrics.plant_store_pending_writes = this.#pending;
    const pending = { write, ...Promise.withResolvers<unknown>() };
    this.#unsent.push(pending);
    if (this.#unsent.length === 1) process.nextTick(() => this.#flush());
    if (this.#unsent.length === maxBatchWrites) this.#flush();
    return pending.promise;
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
    const writes = this.#unsent;
    if (writes.length === 0) return;
    this.#unsent = [];
    try {
      this.start();
      const batch: Batch = { sentMs: nowMs(), writes: writes.map(({ write }) => write) };
      this.#thread?.postMessage(batch);
      this.#sent.push({ sinceMs: performance.now(), writes });
    } catch (error) {
      // The thread could not be started, so nothing was sent.
      this.#reject(writes, storageUnavailable(error));
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
      if ('diskFailure' in message) {
        this.#diskFailure = message.diskFailure;
        this.#onDiskFailure(message.diskFailure);
      } else if (this.#thread === thread) this.#reportOutcomes(message);
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
    for (const { writes } of this.#sent.splice(0)) this.#reject(writes, problem);
  }

  #reject(writes: readonly PendingWrite[], problem: Problem): void {
    metrics.plant_store_pending_writes = this.#pending -= writes.length;
    for (const { reject } of writes) reject(problem);
  }

  #reportOutcomes(ofBatches: Outcomes): void {
    const sinceMs = this.#sent[0]?.sinceMs ?? performance.now();
    for (const outcomes of ofBatches) {
      const { writes = [] } = this.#sent.shift() ?? {};
      metrics.plant_store_pending_writes = this.#pending -= writes.length;
      for (const [at, { resolve, reject }] of writes.entries()) {
        const outcome = outcomes[at];
        if (isFailure(outcome)) {
          const { kind, detail, ...more } = outcome.problem;
          reject(new Problem(kind, detail, more));
        } else resolve(outcome);
      }
    }
    const all = ofBatches.flat();
    if (!all.every(isFailure)) countCommit(all.length, sinceMs);
  }

  /** Call it regularly: a disk that hangs must not block requests forever. */
  rejectOverdue(): void {
    const problem = outcomeUnknown(new Error(`the write took more than ${outcomeTimeoutMs} ms`));
    const beforeMs = performance.now() - outcomeTimeoutMs;
    for (const { sinceMs, writes } of this.#sent) {
      if (sinceMs >= beforeMs) return;
      for (const { reject } of writes) reject(problem); // they still count as pending
    }
  }
}
