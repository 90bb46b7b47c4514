import { isDefect } from './errors.ts';

/**
 * Waits for all responses, so that the connection is free, then rejects with the first error. A defect comes
 * first, because it closes the connection and so fails the other statements.
 */
export async function settled<const T extends readonly Promise<unknown>[]>(
  responses: T,
): Promise<{ -readonly [at in keyof T]: Awaited<T[at]> }> {
  let failed: PromiseRejectedResult | undefined;
  for (const result of await Promise.allSettled(responses)) {
    if (result.status === 'fulfilled') continue;
    if (failed === undefined || isDefect(result.reason)) failed = result;
  }
  if (failed !== undefined) throw failed.reason;
  return Promise.all(responses);
}
