/**
 * Group commit: writes go to a thread that takes all that have come whenever it is done with a
 * commit, and makes the next one of them. The event loop and the disk never wait for each other.
 */
import { channel } from 'node:diagnostics_channel';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { outcomeUnknown, Problem, storageUnavailable, tooManyWrites } from '../problem.ts';
import type { FileId } from './open-file.ts';
import {
  isFailure,
  nowMs,
  type DiskFailed,
  type Outcome,
  type Parcel,
  type ThreadData,
  type Write,
  type WriteKind,
  type WriteResults,
} from './writes.ts';

/** Writes that may be under way at a time; one more is refused at once. */
export const underWayMax = 4_096;
/** Writes that are handed over together; those of one turn of the event loop are, up to so many. */
const parcelMax = 8;
/** What a write may take, a lock's wait included; then its outcome is given up as unknown. */
const outcomeMsMax = 20_000;
const sweepMs = 1_000;

/** For metrics, after each commit: `{ writes, durationMs }`, from when the first of them came. */
const committed = channel('plant-store:commit');

interface Waiting {
  write: Write;
  sinceMs: number;
  settle: (outcome: Outcome) => void;
}

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
  /** Those of this turn of the event loop. */
  #unsent: Waiting[] = [];
  /** Those that the thread has, in the order that it answers in. */
  #sent: Waiting[] = [];

  constructor(path: string, fileId: FileId, { onCommit, onDiskFailure }: WriterEvents) {
    this.#path = path;
    this.#fileId = fileId;
    this.#onCommit = onCommit;
    this.#onDiskFailure = onDiskFailure;
  }

  /** Resolves once the write is on disk; rejects with a Problem that says what became of it. */
  async write<Kind extends WriteKind>(
    write: Extract<Write, readonly [Kind, ...unknown[]]>,
  ): Promise<WriteResults[Kind]> {
    if (this.#diskFailure !== undefined) throw storageUnavailable(this.#diskFailure);
    if (this.#unsent.length + this.#sent.length >= underWayMax) throw tooManyWrites();
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.#unsent.push({ write, sinceMs: nowMs(), settle: resolve });
    if (this.#unsent.length === 1) process.nextTick(() => this.#send());
    if (this.#unsent.length === parcelMax) this.#send();

    const outcome = await promise;
    if (!isFailure(outcome)) return outcome as WriteResults[Kind]; // of this very write
    const { kind, detail, cause } = outcome.problem;
    throw new Problem(kind, detail, { cause });
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
    if (this.#unsent.length === 0) return;
    const parcel: Parcel = {
      sinceMs: this.#unsent[0]?.sinceMs ?? nowMs(),
      writes: this.#unsent.map(({ write }) => write),
    };
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage(parcel);
      this.#sent.push(...this.#unsent);
    } catch (error) {
      // The system has no room for a thread now; nothing was sent.
      const problem = storageUnavailable(error);
      for (const { settle } of this.#unsent) settle({ problem });
    }
    this.#unsent = [];
  }

  #start(): Worker {
    const taken = new SharedArrayBuffer(8);
    const workerData: ThreadData = { path: this.#path, fileId: this.#fileId, taken };
    const thread = new Worker(threadFile, { workerData });
    let settledCount = 0;
    const sweep = setInterval(() => this.#giveUp(nowMs() - outcomeMsMax), sweepMs).unref();
    const lost = (cause: unknown) => {
      clearInterval(sweep);
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      // Nobody can tell what became of the writes that it had taken. It never saw the others.
      const inHand = Number(Atomics.load(new BigInt64Array(taken), 0)) - settledCount;
      const problemAt = (at: number) => (at < inHand ? outcomeUnknown : storageUnavailable)(cause);
      this.#settle(this.#sent.map((_, at) => ({ problem: problemAt(at) })));
    };
    thread.on('message', (message: readonly Outcome[] | DiskFailed) => {
      if ('diskFailure' in message) return this.#stopWriting(message.diskFailure);
      if (this.#thread !== thread) return; // they were settled as lost
      settledCount += message.length;
      this.#settle(message);
    });
    thread.on('error', lost);
    thread.on('exit', (code) => lost(new Error(`the writing thread ended with ${code}`)));
    return thread;
  }

  /** The thread says so with each write that it refuses. */
  #stopWriting(cause: unknown): void {
    if (this.#diskFailure !== undefined) return;
    this.#diskFailure = cause;
    this.#onDiskFailure(cause);
  }

  /** In the order that the writes were sent in. */
  #settle(outcomes: readonly Outcome[]): void {
    this.#onCommit();
    const settled = this.#sent.splice(0, outcomes.length);
    if (committed.hasSubscribers && !outcomes.every(isFailure)) {
      const durationMs = nowMs() - (settled[0]?.sinceMs ?? nowMs());
      committed.publish({ writes: settled.length, durationMs });
    }
    for (const [at, { settle }] of settled.entries()) settle(outcomes[at]);
  }

  /** A disk that hangs must not hang who waits for it. A later outcome finds nobody who waits. */
  #giveUp(beforeMs: number): void {
    const problem = outcomeUnknown(new Error('the disk takes too long'));
    for (const { sinceMs, settle } of this.#sent) {
      if (sinceMs >= beforeMs) return;
      settle({ problem });
    }
  }
}
