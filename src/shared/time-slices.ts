/**
 * Shares the event loop between long reads and other requests. In each iteration of the loop, long reads run for one
 * slice, and their users take turns. A slice is about as long as other requests took in the iteration before, so long
 * reads get half of a busy loop, and all of an idle one.
 */
import { RoundRobin } from './round-robin.ts';

/** After at most this time, a slice begins no other read. A read takes up to 2 ms. */
const maxSliceMs = 1;

let leftMs = maxSliceMs;
let totalMs = 0;
/** When the last read ended. */
let endedMs = 0;
let isScheduled = false;
/** By key, such as a user. At most one for each list in progress. */
const waiting = new RoundRobin<() => void>();

/**
 * Runs `work` now, or in a later iteration of the event loop if the slice of this one is used up. The keys, such as
 * users, take turns.
 */
export function runInSlice<T>(key: string, work: () => Promise<T>): Promise<T> {
  if (waiting.size === 0 && leftMs > 0) return timed(work);
  const { promise, resolve } = Promise.withResolvers<T>();
  waiting.add(key, () => resolve(timed(work)));
  return promise;
}

/** How long reads in slices have taken since the start of the process. */
export function timeInSlices(): number {
  return totalMs;
}

function timed<T>(work: () => Promise<T>): Promise<T> {
  const startedMs = performance.now();
  const result = Promise.try(work);
  endedMs = performance.now();
  leftMs -= endedMs - startedMs;
  totalMs += endedMs - startedMs;
  if (!isScheduled) setImmediate(beginSlice);
  isScheduled = true;
  return result;
}

function beginSlice(): void {
  isScheduled = false;
  leftMs = waiting.size === 0 ? maxSliceMs : Math.min(maxSliceMs, performance.now() - endedMs);
  for (let next = waiting.take(); next !== undefined; next = waiting.take()) {
    next();
    if (leftMs <= 0) return; // the next slice is scheduled and runs the others
  }
}
