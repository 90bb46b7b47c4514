const sleepCell = new Int32Array(new SharedArrayBuffer(4)); // never notified

/** Blocks this thread for `ms` milliseconds. */
export function sleepSync(ms: number): void {
  Atomics.wait(sleepCell, 0, 0, ms);
}
