/**
 * Shares the event loop between long reads and other requests. In each iteration of the loop, long reads run for one
 * slice, and their users take turns. The rest of the iteration is for other requests.
 */
import type { Identity } from '../access/access.ts';
import { RoundRobin } from './round-robin.ts';

/** Approximate: the last read of a slice can exceed it. */
const sliceMs = 2;
/** A read that takes longer ends its slice, because another one would not fit. */
const maxShortReadMs = sliceMs / 2;

let leftMs = sliceMs;
let isScheduled = false;
/** By user. At most one for each list in progress. */
const waiting = new RoundRobin<() => void>();

/** Runs `work` now, or in a later iteration of the event loop if the slice of this one is used up. */
export function runInSlice<T>(user: Identity, work: () => Promise<T>): Promise<T> {
  if (waiting.size === 0 && leftMs > 0) return timed(work);
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  waiting.add(turnOf(user), () => void timed(work).then(resolve, reject));
  return promise;
}

/** The key with which a user takes turns with others. */
export function turnOf({ store, user }: Identity): string {
  return `${store} ${user}`;
}

function timed<T>(work: () => Promise<T>): Promise<T> {
  const startedMs = performance.now();
  const result = Promise.try(work);
  const tookMs = performance.now() - startedMs;
  leftMs = tookMs > maxShortReadMs ? 0 : leftMs - tookMs;
  schedule();
  return result;
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(beginSlice);
}

function beginSlice(): void {
  isScheduled = false;
  leftMs = sliceMs;
  for (let next = waiting.take(); next !== undefined; next = waiting.take()) {
    next();
    if (leftMs <= 0) return; // the next slice is scheduled and runs the others
  }
}
