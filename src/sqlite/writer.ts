/**
 * Group commit: writes that come while a commit is under way wait for each other and share the next
 * one. A lone write goes at once.
 */
import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { outcomeUnknown, Problem } from '../problem.ts';
import { unavailable } from './errors.ts';
import type { Outcome, Write, WriteResults } from './writes.ts';

/** Writes that may wait for their turn; one more is refused at once. */
export const waitingMax = 4_096;
/** Writes of one transaction: a commit of so many takes a few milliseconds. */
const togetherMax = 512;
/** A write that has waited for longer when its turn comes is refused: nobody waits for it any more. */
const waitMsMax = 5_000;

interface Waiting {
  write: Write;
  sinceMs: number;
  settle: (outcome: Outcome) => void;
}

// The sources in a checkout, the compiled file in what is published.
const threadFile = new URL(`./writer-thread${extname(import.meta.filename)}`, import.meta.url);

export class Writer {
  readonly #path: string;
  #thread: Worker | undefined;
  readonly #waiting: Waiting[] = [];
  #underWay: Waiting[] = [];

  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves once the write is on disk; rejects with a Problem that says what became of it. */
  async write<Kind extends Write['kind']>(
    write: Extract<Write, { kind: Kind }>,
  ): Promise<WriteResults[Kind]> {
    if (this.#waiting.length >= waitingMax) throw tooMany();
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.#waiting.push({ write, sinceMs: performance.now(), settle: resolve });
    if (this.#underWay.length === 0) this.#send();
    const outcome = await promise;
    if ('value' in outcome) return outcome.value as WriteResults[Kind]; // of this very write
    const { kind, detail, cause } = outcome.problem;
    throw new Problem(kind, detail, { cause });
  }

  /** Waits for every write that was taken, and ends the thread. */
  async close(): Promise<void> {
    while (this.#thread !== undefined && this.#underWay.length > 0) {
      // Its death is an outcome too, and #start has told whom it concerns.
      const thread = this.#thread;
      await Promise.race([once(thread, 'message'), once(thread, 'exit')]).catch(() => {});
    }
    if (this.#thread === undefined) return;
    this.#thread.postMessage('close');
    await once(this.#thread, 'exit');
  }

  #send(): void {
    const next = this.#waiting.splice(0, togetherMax);
    const tooLateMs = performance.now() - waitMsMax;
    this.#underWay = next.filter(({ sinceMs }) => sinceMs >= tooLateMs);
    refuse(next.filter(({ sinceMs }) => sinceMs < tooLateMs));
    if (this.#underWay.length === 0) {
      if (this.#waiting.length > 0) this.#send();
      return;
    }
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage(this.#underWay.map(({ write }) => write));
    } catch (error) {
      // The system has no room for a thread now; nothing was sent.
      refuse([...this.#underWay, ...this.#waiting.splice(0)], error);
      this.#underWay = [];
    }
  }

  #start(): Worker {
    const thread = new Worker(threadFile, { workerData: this.#path });
    const lost = (cause: unknown) => {
      if (this.#thread !== thread) return;
      // It has died with writes in its hands: whether they are stored, nobody can tell.
      this.#thread = undefined;
      this.#settle(this.#underWay.map(() => ({ problem: outcomeUnknown(cause) })));
    };
    thread.on('message', (outcomes: readonly Outcome[]) => this.#settle(outcomes));
    thread.on('error', lost);
    thread.on('exit', (code) => lost(new Error(`the writing thread ended with ${code}`)));
    return thread;
  }

  #settle(outcomes: readonly Outcome[]): void {
    const settled = this.#underWay;
    this.#send(); // first, so that the disk works while the answers are written
    for (const [at, { settle }] of settled.entries()) {
      const outcome = outcomes[at];
      if (outcome !== undefined) settle(outcome);
    }
  }
}

/** Tells writes that were never begun so. */
function refuse(writes: readonly Waiting[], cause?: unknown): void {
  if (writes.length === 0) return;
  const problem = new Problem('storage-unavailable', unavailable, { cause });
  for (const { settle } of writes) settle({ problem });
}

function tooMany(): Problem {
  return new Problem('overloaded', 'Too many writes wait for their turn; nothing was changed.');
}
