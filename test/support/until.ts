import { setTimeout as pause } from 'node:timers/promises';

const pollMs = 10;

/** Polls until the condition is true. Throws after the timeout. */
export async function until(
  description: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 30_000,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) {
      throw new Error(`not within ${timeoutMs} ms: ${description}`);
    }
    await pause(pollMs);
  }
}

/** Waits until so many of something are there. Each one more has the time of `until`, so that a busy machine can be slow. */
export async function untilCount(
  description: string,
  wanted: number,
  count: () => number,
): Promise<void> {
  let known = count();
  while (known < wanted) {
    const before = known;
    await until(`${description}: ${before} of ${wanted}`, () => count() > before);
    known = count();
  }
}
