/** Milliseconds of a monotonic clock that all threads share: performance.now() starts at 0 in each. */
export function nowMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}
