/**
 * Limits lookups of tokens that are not cached. Clients can invent any number of tokens, because the checksum is
 * public. So each client has a limited number of lookups, and clients are served round-robin. A flood from one
 * client delays neither the new tokens of others nor requests with known tokens.
 */
import { FairSemaphore } from '../fair-semaphore.ts';
import { Problem } from '../problem.ts';

/** Maximum number of requests that wait for a lookup. */
export const maxWaitingLookups = 2_048;
/**
 * How long a lookup can wait. On PostgreSQL, a response takes at most 12 s: this, 4 s to identify the caller, 1 s to
 * check the schema, and 5.5 s to write.
 */
const maxLookupWaitMs = 1_000;

export class Lookups {
  readonly #semaphore: FairSemaphore;

  /** `max` is the number of concurrent lookups. One client can have half of them. */
  constructor(max: number) {
    this.#semaphore = new FairSemaphore({
      max,
      maxOfKey: max / 2,
      maxWaiting: maxWaitingLookups,
      maxWaitMs: maxLookupWaitMs,
      refusal: tooManyLookups,
    });
  }

  /** Runs `lookup` for the client at this address. Rejects with `overloaded` if it cannot start in time. */
  run<T>(address: string | undefined, lookup: () => Promise<T>): Promise<T> {
    return this.#semaphore.run(clientAt(address), lookup);
  }
}

function tooManyLookups(): Problem {
  return new Problem(
    'overloaded',
    'Too many requests with new tokens are waiting. Try again later.',
  );
}

/**
 * The client of an address. IPv6 addresses with the same first 64 bits are one client, because a host can have a
 * complete /64 network. Each IPv4 address is a client, also as ::ffff:192.0.2.1.
 */
export function clientAt(address = ''): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [before = [], after = []] = address.split('::').map((part) => part.split(':'));
  const left = 8 - before.length - after.length; // above 0 only if there is a `::`
  const zeros = Array.from({ length: Math.max(0, left) }, () => '0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}
