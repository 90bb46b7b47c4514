/**
 * What is safe to repeat, and when.
 */
import type { PlantStoreError } from './problem.ts';

/**
 * What repeating a call does:
 * - `read`: nothing, because the call changes nothing
 * - `repeatable`: nothing more than the first time
 * - `once`: it can change the store a second time
 */
export type Effect = 'read' | 'repeatable' | 'once';

/** The service ends every request within 12 s, so after this time, its response is lost. */
export const maxRequestMs = 15_000;
const firstPauseMs = 500;
/** The longest pause without its random part, unless the service asks for a longer one. */
const longestPauseMs = 15_000;

/** Responses of a proxy that does not reach the service. */
const gatewayStatuses: readonly number[] = [502, 503, 504];

/** Whether the same request can succeed later. */
export function isTemporary({ kind, status, retryAfterSeconds }: PlantStoreError): boolean {
  return kind === 'network' || retryAfterSeconds !== undefined || gatewayStatuses.includes(status);
}

/** At least as long as the response asks for, twice as long after each attempt, and different for each client. */
export function pauseMs({ retryAfterSeconds = 0 }: PlantStoreError, retries: number): number {
  const backoffMs = Math.min(firstPauseMs * 2 ** retries, longestPauseMs);
  return Math.max(retryAfterSeconds * 1_000, backoffMs) * (1 + Math.random() / 2);
}
