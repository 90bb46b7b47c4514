/**
 * The log of answers with 5xx. Without a token, anybody can cause some kinds of them as often as they like,
 * and must not fill the disk: each kind has a bounded number of entries in a second.
 */
import type { Logger } from 'pino';
import type { Problem, ProblemKind } from '../problem.ts';

const entriesPerSecondMax = 20;

interface Kind {
  secondEndsMs: number;
  entriesInSecond: number;
  /** Failures since the last entry. */
  suppressed: number;
}

export class Failures {
  readonly #log: Logger;
  readonly #kinds = new Map<ProblemKind, Kind>();

  constructor(log: Logger) {
    this.#log = log;
  }

  add(requestId: string, problem: Problem): void {
    const { kind, cause } = problem;
    const of = this.#kinds.get(kind) ?? { secondEndsMs: 0, entriesInSecond: 0, suppressed: 0 };
    this.#kinds.set(kind, of);
    const nowMs = performance.now();
    if (nowMs >= of.secondEndsMs) {
      of.secondEndsMs = nowMs + 1_000;
      of.entriesInSecond = 0;
    }
    if (of.entriesInSecond === entriesPerSecondMax) {
      of.suppressed++;
      return;
    }
    of.entriesInSecond++;
    const entry = { requestId, kind, err: cause ?? problem };
    this.#log.error(
      of.suppressed === 0 ? entry : { ...entry, suppressed: of.suppressed },
      'request failed',
    );
    of.suppressed = 0;
  }
}
