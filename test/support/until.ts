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
