/**
 * Logs responses with a 5xx status, up to a number of entries per second and kind. Clients without a token can cause
 * some kinds at any rate, and must not fill the disk.
 */
import type { Logger } from 'pino';
import type { Problem, ProblemKind } from '../problem.ts';

const maxEntriesPerSecond = 20;

interface RateLimit {
  secondEndsMs: number;
  entriesInSecond: number;
  /** Failures that were not logged since the last entry. */
  suppressed: number;
}

export class FailureLog {
  readonly #log: Logger;
  readonly #rateLimits = new Map<ProblemKind, RateLimit>();

  constructor(log: Logger) {
    this.#log = log;
  }

  add(requestId: string, problem: Problem): void {
    const { kind, cause } = problem;
    const limit = this.#rateLimits.get(kind) ?? newRateLimit();
    this.#rateLimits.set(kind, limit);
    const nowMs = performance.now();
    if (nowMs >= limit.secondEndsMs) {
      limit.secondEndsMs = nowMs + 1_000;
      limit.entriesInSecond = 0;
    }
    if (limit.entriesInSecond === maxEntriesPerSecond) {
      limit.suppressed++;
      return;
    }
    limit.entriesInSecond++;
    const { suppressed } = limit;
    const entry = { requestId, kind, err: cause ?? problem };
    this.#log.error(suppressed === 0 ? entry : { ...entry, suppressed }, 'request failed');
    limit.suppressed = 0;
  }
}

function newRateLimit(): RateLimit {
  return { secondEndsMs: 0, entriesInSecond: 0, suppressed: 0 };
}
