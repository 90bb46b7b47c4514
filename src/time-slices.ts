/**
 * Shares the event loop between lists and other requests. In each iteration of the loop, reads of lists run for
 * one slice, first come, first served. The rest of the iteration is for other requests.
 */

/** Approximate: the last read of a slice can exceed it. */
const sliceMs = 2;
/** A read that takes longer ends its slice, because another one would not fit. */
const maxShortReadMs = sliceMs / 2;

let leftMs = sliceMs;
let isScheduled = false;
/** At most one for each list in progress. */
const waiting: (() => void)[] = [];

/** Runs `work` now, or in a later iteration of the event loop if the slice of this one is used up. */
export function runInSlice<T>(work: () => Promise<T>): Promise<T> {
  if (waiting.length === 0 && leftMs > 0) return timed(work);
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  waiting.push(() => void timed(work).then(resolve, reject));
  return promise;
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
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    next();
    if (leftMs <= 0) return; // the next slice is scheduled and runs the others
  }
}
