/**
 * What is safe to repeat, and when.
 */
import type { Failure, PlantStoreError } from './problem.ts';

/**
 * What repeating a call does:
 * - `read`: nothing, because the call changes nothing
 * - `repeatable`: nothing more than the first time
 * - `once`: it can change the store a second time
 */
export type Effect = 'read' | 'repeatable' | 'once';

const firstPauseMs = 500;

/** Responses of a proxy that does not reach the service. */
const gatewayStatuses: readonly number[] = [502, 503, 504];

/** Problems that promise that nothing was changed. */
const unchangedKinds: readonly string[] = ['overloaded', 'storage-full', 'storage-unavailable'];

/** Whether the request may have changed the store although it failed. */
export function mayHaveChanged({ kind, status }: Failure): boolean {
  if (unchangedKinds.includes(kind)) return false;
  return status < 300 || status >= 500;
}

/** Whether the same request can succeed later. */
export function isTemporary({ kind, status, retryAfterSeconds }: PlantStoreError): boolean {
  return kind === 'network' || retryAfterSeconds !== undefined || gatewayStatuses.includes(status);
}

/** At least as long as the response asks for, twice as long after each attempt, and different for each client. */
export function pauseMs({ retryAfterSeconds = 0 }: PlantStoreError, retries: number): number {
  const shortestMs = Math.max(retryAfterSeconds * 1_000, firstPauseMs * 2 ** retries);
  return shortestMs * (1 + Math.random() / 2);
}

/** Waits. Throws the reason of the signal if it aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const elapsed = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await unlessAborted(elapsed, signal).finally(() => clearTimeout(timer));
}

/** The result of the promise. Throws the reason of the signal if it aborts. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => (abort = () => reject(signal.reason)));
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
