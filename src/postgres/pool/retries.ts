/**
 * Retries of transient failures.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { isConnectionLost, isRetryable, TimeoutError } from '../errors.ts';
import { responseTimeoutMs } from './timeout.ts';

const maxLostAttempts = 4;
const maxPauseMs = 50;

interface RetryOptions {
  isFinal?: ((error: unknown) => boolean) | undefined;
  isConflict?: (error: unknown) => boolean;
}

/**
 * Retries transient failures, unless they are final: a lost connection a few times, and a conflict until time is up,
 * because one of the transactions in conflict has succeeded.
 */
export async function withRetries<T>(
  work: () => Promise<T>,
  { isFinal = () => false, isConflict = isRetryable }: RetryOptions = {},
): Promise<T> {
  const deadlineMs = performance.now() + responseTimeoutMs;
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isLost = isConnectionLost(error) && !(error instanceof TimeoutError);
      const isTransient = isConflict(error) || (isLost && attempt < maxLostAttempts);
      if (!isTransient || performance.now() > deadlineMs || isFinal(error)) throw error;
      await jitter();
    }
  }
}

/** A short random pause, so that transactions in conflict do not conflict again. */
export function jitter(): Promise<void> {
  return pause(Math.random() * maxPauseMs);
}
