/**
 * Logs responses with a 5xx status, up to a number of entries per second and kind. Clients without a token can cause
 * some kinds at any rate, and must not fill the disk.
 */
import type { Logger } from 'pino';
import type { Problem, ProblemKind } from '../../problem.ts';

const maxEntriesPerSecond = 20;

export class FailureLog {
  readonly #log: Logger;
  #secondEndsMs = 0;
  readonly #entriesInSecond = new Map<ProblemKind, number>();
  /** Failures that were not logged since the last entry. */
  readonly #suppressed = new Map<ProblemKind, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  add(requestId: string, problem: Problem): void {
    const { kind, cause } = problem;
    const nowMs = performance.now();
    if (nowMs >= this.#secondEndsMs) {
      this.#secondEndsMs = nowMs + 1_000;
      this.#entriesInSecond.clear();
    }
    const entries = this.#entriesInSecond.get(kind) ?? 0;
    const suppressed = this.#suppressed.get(kind) ?? 0;
    if (entries === maxEntriesPerSecond) return void this.#suppressed.set(kind, suppressed + 1);
    this.#entriesInSecond.set(kind, entries + 1);
    this.#suppressed.delete(kind);
    const entry = { requestId, kind, err: cause ?? problem };
    this.#log.error(suppressed === 0 ? entry : { ...entry, suppressed }, 'request failed');
  }
}
