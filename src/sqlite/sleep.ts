const sleepCell = new Int32Array(new SharedArrayBuffer(4)); // never notified

/** Blocks this thread. */
export function sleepSync(ms: number): void {
  Atomics.wait(sleepCell, 0, 0, ms);
}
