/**
 * Group commit: writes go to a thread that takes all that have come whenever it is done with a
 * commit, and makes the next one of them. The event loop and the disk never wait for each other.
 */
import { channel } from 'node:diagnostics_channel';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Pending } from '../pending.ts';
import { outcomeUnknown, Problem, storageUnavailable } from '../problem.ts';
import type { FileId } from './open-file.ts';
import {
  isFailure,
  nowMs,
  type DiskFailed,
  type Failure,
  type Outcomes,
  type Batch,
  type ThreadData,
  type Write,
  type WriteKind,
  type WriteResults,
} from './writes.ts';

/** Writes that are handed over together; those of one turn of the event loop are, up to so many. */
const batchMax = 8;
/** What a write may take, a lock's wait included; then its outcome is given up as unknown. */
const outcomeMsMax = 20_000;
const sweepMs = 1_000;

/** For metrics, after each commit: `{ writes, durationMs }`, from when the first of them came. */
const committed = channel('plant-store:commit');

// The sources in a checkout, the compiled file in what is published.
const threadFile = new URL(`./writer-thread${extname(import.meta.filename)}`, import.meta.url);

interface WriterEvents {
  /** After a commit, before anybody is told of it. */
  onCommit: () => void;
  /** Once, when the disk has failed a commit: from then on every write is refused. */
  onDiskFailure: (cause: unknown) => void;
}

export class Writer {
  readonly #path: string;
  readonly #fileId: FileId;
  readonly #onCommit: () => void;
  readonly #onDiskFailure: (cause: unknown) => void;
  #diskFailure: unknown;
  #thread: Worker | undefined;
  readonly #pending = new Pending<WriteResults[WriteKind]>();
  /** Those of this turn of the event loop. */
  #unsent = new Map<number, Write>();
  /** The number of the last write that a thread was sent. */
  #lastSent = 0;

  constructor(path: string, fileId: FileId, { onCommit, onDiskFailure }: WriterEvents) {
    this.#path = path;
    this.#fileId = fileId;
    this.#onCommit = onCommit;
    this.#onDiskFailure = onDiskFailure;
  }

  /** Resolves once the write is on disk; rejects with a Problem that says what became of it. */
  async write<W extends Write>(write: W): Promise<WriteResults[W[0]]> {
    if (this.#diskFailure !== undefined) throw storageUnavailable(this.#diskFailure);
    const [number, result] = this.#pending.add();
    this.#unsent.set(number, write);
    if (this.#unsent.size === 1) process.nextTick(() => this.#send());
    if (this.#unsent.size === batchMax) this.#send();
    return (await result) as WriteResults[W[0]]; // of this very write
  }

  /** Waits for every write that was taken, and ends the thread. */
  async close(): Promise<void> {
    this.#send();
    const thread = this.#thread;
    if (thread === undefined) return;
    const ended = new Promise((resolve) => thread.once('exit', resolve));
    thread.postMessage('close'); // it does all that it was sent before
    await ended;
  }

  #send(): void {
    if (this.#unsent.size === 0) return;
    const writes = this.#unsent;
    this.#unsent = new Map();
    try {
      this.#thread ??= this.#start();
      const batch: Batch = { sinceMs: nowMs(), writes };
      this.#thread.postMessage(batch);
      for (const number of writes.keys()) this.#lastSent = number;
    } catch (error) {
      // The system has no room for a thread now; nothing was sent.
      const problem = storageUnavailable(error);
      for (const number of writes.keys()) this.#pending.reject(number, problem);
    }
  }

  #start(): Worker {
    const lastTaken = new SharedArrayBuffer(8);
    const workerData: ThreadData = { path: this.#path, fileId: this.#fileId, lastTaken };
    const thread = new Worker(threadFile, { workerData });
    const sweep = setInterval(() => this.#giveUp(), sweepMs).unref();
    const lost = (cause: unknown) => {
      clearInterval(sweep);
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      this.#rejectSent(Number(Atomics.load(new BigInt64Array(lastTaken), 0)), cause);
    };
    thread.on('message', (message: Outcomes | DiskFailed) => {
      if ('diskFailure' in message) this.#stopWriting(message.diskFailure);
      else this.#settle(message);
    });
    thread.on('error', lost);
    thread.on('exit', (code) => lost(new Error(`the writing thread ended with ${code}`)));
    return thread;
  }

  /** Nobody can tell what became of the writes that a lost thread had taken. It never saw the others. */
  #rejectSent(lastTaken: number, cause: unknown): void {
    this.#onCommit();
    for (const number of this.#pending.numbers()) {
      if (number > this.#lastSent) return;
      const problem = number <= lastTaken ? outcomeUnknown(cause) : storageUnavailable(cause);
      this.#pending.reject(number, problem);
    }
  }

  /** The thread says so with each write that it refuses. */
  #stopWriting(cause: unknown): void {
    if (this.#diskFailure !== undefined) return;
    this.#diskFailure = cause;
    this.#onDiskFailure(cause);
  }

  #settle(outcomes: Outcomes): void {
    this.#onCommit();
    if (committed.hasSubscribers) this.#publish(outcomes);
    for (const [number, outcome] of outcomes) {
      if (isFailure(outcome)) this.#pending.reject(number, problemOf(outcome));
      else this.#pending.resolve(number, outcome);
    }
  }

  #publish(outcomes: Outcomes): void {
    if ([...outcomes.values()].every(isFailure)) return;
    const [first = 0] = outcomes.keys();
    const durationMs = performance.now() - (this.#pending.sinceMs(first) ?? performance.now());
    committed.publish({ writes: outcomes.size, durationMs });
  }

  /** A disk that hangs must not hang who waits for it. */
  #giveUp(): void {
    const problem = outcomeUnknown(new Error('the disk takes too long'));
    this.#pending.rejectBefore(performance.now() - outcomeMsMax, problem);
  }
}

function problemOf({ problem: { kind, detail, cause } }: Failure): Problem {
  return new Problem(kind, detail, { cause });
}
