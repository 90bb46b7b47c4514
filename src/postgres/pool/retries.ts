/**
 * Retries of transient failures.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { isConnectionLost, isRetryable, TimeoutError } from '../errors.ts';

/**
 * How long a transient failure is retried, and how long the longest pause between attempts is. A conflict is
 * retried for all of that time, because one of the transactions in conflict has succeeded.
 */
const maxRetryMs = 1_000;
const maxLostAttempts = 4;
const maxPauseMs = 50;

/** Retries transient failures, unless they are final: a lost connection or a conflict with another transaction. */
export async function withRetries<T>(
  work: () => Promise<T>,
  isFinal: (error: unknown) => boolean = () => false,
): Promise<T> {
  const deadlineMs = performance.now() + maxRetryMs;
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isConflict = isRetryable(error);
      const isTransient = isConflict || isConnectionLost(error);
      const isLastAttempt =
        performance.now() > deadlineMs || (!isConflict && attempt >= maxLostAttempts);
      if (!isTransient || isLastAttempt || error instanceof TimeoutError || isFinal(error)) {
        throw error;
      }
      await jitter();
    }
  }
}

/** A short random pause, so that transactions in conflict do not conflict again. */
export function jitter(): Promise<void> {
  return pause(Math.random() * maxPauseMs);
}
