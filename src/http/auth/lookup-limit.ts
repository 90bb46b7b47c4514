/**
 * Limits lookups of tokens that are not cached, because clients can invent any number of tokens with a valid checksum.
 * Each client has a limited number of lookups, and clients take turns. So a flood from one client delays neither the
 * new tokens of others nor requests with known tokens.
 */
import { FairSemaphore } from '../../shared/fair-semaphore.ts';
import { Problem } from '../../problem.ts';

/** Maximum number of requests that wait for a lookup. */
export const maxWaitingLookups = 2_048;
/**
 * How long a lookup can wait. On PostgreSQL, a response takes at most 12 s: this, 4 s to identify the caller, 1 s to
 * check the schema, and 5.5 s to write.
 */
const maxLookupWaitMs = 1_000;

/** `max` is the number of concurrent lookups. One client (client-address.ts) can have half of them. */
export function limitLookups(max: number): FairSemaphore {
  return new FairSemaphore({
    max,
    maxOfKey: max / 2,
    maxWaiting: maxWaitingLookups,
    maxWaitMs: maxLookupWaitMs,
    refusal: () =>
      new Problem('overloaded', 'Too many requests with new tokens are waiting. Try again later.'),
  });
}
