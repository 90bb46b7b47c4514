/**
 * Shares the event loop between lists and everything else: reading lists takes a slice of each turn of
 * the loop, in the order in which it was asked for, and the rest of the turn is for other requests.
 */

/** A read takes a fraction of it, so a turn is hardly longer. */
const sliceMs = 2;

let leftMs = sliceMs;
let isScheduled = false;
/** At most one for each list in progress. */
const waiting: (() => void)[] = [];

/** Runs `work` now, or in a later turn of the event loop if the slice of this one is used up. */
export function inSlice<T>(work: () => Promise<T>): Promise<T> {
  if (waiting.length === 0 && leftMs > 0) return timed(work);
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  waiting.push(() => void timed(work).then(resolve, reject));
  return promise;
}

function timed<T>(work: () => Promise<T>): Promise<T> {
  const startedMs = performance.now();
  const result = Promise.try(work);
  leftMs -= performance.now() - startedMs;
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
    if (leftMs <= 0) return; // what is left begins the slice that this one has scheduled
  }
}
