import { setTimeout as pause } from 'node:timers/promises';

/** Asks again and again until the answer is yes; fails when it is not within the bound. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  boundMs = 10_000,
): Promise<void> {
  for (const endMs = performance.now() + boundMs; !(await isSo()); await pause(10)) {
    if (performance.now() > endMs) throw new Error(`not within ${boundMs} ms: ${what}`);
  }
}
