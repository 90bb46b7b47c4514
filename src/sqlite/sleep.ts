const sleepCell = new Int32Array(new SharedArrayBuffer(4)); // nobody wakes it

/** Blocks this thread for some milliseconds, as SQLite itself does while it waits for a lock. */
export function sleepSync(ms: number): void {
  Atomics.wait(sleepCell, 0, 0, ms);
}
