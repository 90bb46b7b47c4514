/**
 * Removes changes from the log that are too old, in the background. Reads leave them out even before (`keptSince`).
 *
 * A wrong clock must not empty the log. So each hour, the database gets the time. A clock that is more than a day ahead
 * of that time was set, or the service has not run. It is trusted after another day, unless a process with a right
 * clock has continued meanwhile.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { keptSince, type ChangeLog } from './change-log.ts';

const roundIntervalMs = 60_000;
const confirmIntervalMs = 60 * 60 * 1_000;
const maxAheadMs = 24 * 60 * 60 * 1_000;
/** After each step, writes have the storage for this many times as long: they keep 0.9 of their speed. */
const restFactor = 10;

export interface RetentionOptions {
  /** How long changes are kept. */
  keepMs: number;
  /** Number of processes that remove changes. Together, they are as slow as one. */
  processes: number;
  /** Called once for a clock that is not trusted yet, which is this much ahead. */
  onClockAhead: (aheadMs: number) => void;
  /** Called for an error of a round. The next one tries again. */
  onError: (error: unknown) => void;
}

export class Retention {
  readonly #log: ChangeLog;
  readonly #options: RetentionOptions;
  /** Since when, by the monotonic clock, the clock is ahead of this time. */
  #ahead: { confirmedMs: number; sinceMs: number } | undefined;

  constructor(log: ChangeLog, options: RetentionOptions) {
    this.#log = log;
    this.#options = options;
  }

  /** Begins a round each minute until the signal is aborted. Resolves once the step in progress has ended. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.round(signal).catch(this.#options.onError);
      await rest(roundIntervalMs, signal);
    }
  }

  /** Removes all that is too old, unless the clock is not trusted. */
  async round(signal: AbortSignal): Promise<void> {
    const { keepMs, processes } = this.#options;
    if (keepMs > 0 && !(await this.#trustsClock())) return;
    const beforeMs = keptSince(keepMs);
    for (let store: number | undefined = 0; store !== undefined && !signal.aborted;) {
      const startedMs = performance.now();
      store = await this.#log.removeOld(beforeMs, store);
      await rest((performance.now() - startedMs) * restFactor * processes, signal);
    }
  }

  async #trustsClock(): Promise<boolean> {
    const confirmedMs = await this.#log.confirmedTime();
    const nowMs = Date.now();
    const aheadMs = nowMs - confirmedMs;
    if (aheadMs > maxAheadMs && !this.#hasWaited(confirmedMs, aheadMs)) return false;
    if (aheadMs > confirmIntervalMs) await this.#log.confirmTime(nowMs);
    this.#ahead = undefined;
    return true;
  }

  #hasWaited(confirmedMs: number, aheadMs: number): boolean {
    if (this.#ahead?.confirmedMs === confirmedMs) {
      return performance.now() - this.#ahead.sinceMs > maxAheadMs;
    }
    if (this.#ahead === undefined) this.#options.onClockAhead(aheadMs);
    this.#ahead = { confirmedMs, sinceMs: performance.now() };
    return false;
  }
}

/** Resolves early if the signal is aborted. */
async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => {});
}
