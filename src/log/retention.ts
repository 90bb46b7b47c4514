/**
 * Removes changes from the log that are too old, in the background. Reads leave them out even before (`keptSince`).
 *
 * A wrong clock must not empty the log. So each hour, the database gets the time. A clock that is more than a day ahead
 * of that time was set, or the service has not run. It is trusted after another day by that clock, across restarts, unless
 * a process with a right clock has continued meanwhile.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { keptSince, type ChangeLog, type ClockState } from './change-log.ts';

const roundIntervalMs = 60_000;
const confirmIntervalMs = 60 * 60 * 1_000;
const maxAheadMs = 24 * 60 * 60 * 1_000;
/** A clock that is ahead for longer has jumped again, or the service runs less than once a week: the wait begins anew. */
const maxWaitMs = 8 * maxAheadMs;
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

export function createRetention(
  log: ChangeLog,
  { keepMs, processes, onClockAhead, onError }: RetentionOptions,
) {
  /** Whether `onClockAhead` was called for the clock. */
  let isAhead = false;

  /** Removes all that is too old, unless the clock is not trusted. */
  async function round(signal: AbortSignal): Promise<void> {
    if (keepMs > 0 && !(await trustsClock())) return;
    const beforeMs = keptSince(keepMs);
    for (let store: number | undefined = 0; store !== undefined && !signal.aborted;) {
      const startedMs = performance.now();
      store = await log.removeOld(beforeMs, store);
      await rest((performance.now() - startedMs) * restFactor * processes, signal);
    }
  }

  async function trustsClock(): Promise<boolean> {
    const clock = await log.readClock();
    const nowMs = Date.now();
    const aheadMs = nowMs - clock.confirmedMs;
    if (aheadMs > maxAheadMs && !(await hasWaited(clock, nowMs))) {
      if (!isAhead) onClockAhead(aheadMs);
      isAhead = true;
      return false;
    }
    if (aheadMs > confirmIntervalMs) {
      await log.setClock({ confirmedMs: nowMs, aheadSinceMs: undefined });
    }
    isAhead = false;
    return true;
  }

  /** Begins the wait if it has not begun. */
  async function hasWaited(clock: ClockState, nowMs: number): Promise<boolean> {
    const waitedMs = nowMs - (clock.aheadSinceMs ?? Infinity);
    if (waitedMs >= 0 && waitedMs <= maxWaitMs) return waitedMs > maxAheadMs;
    await log.setClock({ ...clock, aheadSinceMs: nowMs });
    return false;
  }

  return {
    round,

    /** Begins a round each minute until the signal is aborted. Resolves once the step in progress has ended. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        await round(signal).catch(onError);
        await rest(roundIntervalMs, signal);
      }
    },
  };
}

/** Resolves early if the signal is aborted. */
async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => {});
}
