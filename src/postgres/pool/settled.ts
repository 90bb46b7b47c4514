import { codeOf, isDefect, sqlState } from '../errors.ts';

/**
 * Waits for all responses, so that the connection is free, then rejects with the first error. A defect comes
 * first, because it closes the connection and so fails the other statements. A statement that was refused because
 * another one in its transaction failed comes last.
 */
export async function settled<const T extends readonly Promise<unknown>[]>(
  responses: T,
): Promise<{ -readonly [at in keyof T]: Awaited<T[at]> }> {
  const results = await Promise.allSettled(responses);
  const failures = results.filter((result) => result.status === 'rejected');
  const failure =
    failures.find(({ reason }) => isDefect(reason)) ??
    failures.find(({ reason }) => codeOf(reason) !== sqlState.inFailedTransaction) ??
    failures[0];
  if (failure !== undefined) throw failure.reason;
  return Promise.all(responses);
}
