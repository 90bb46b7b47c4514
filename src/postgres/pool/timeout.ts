import { TimeoutError } from '../errors.ts';

/** For the response to a statement, or to all statements of a read. The server gives up earlier. */
export const responseTimeoutMs = 4_000;
/** For what comes before a statement: a connection to a host, a place among the reads, or a database that is ready. */
export const waitTimeoutMs = 2_000;
/** For the check of a server, and how long requests rely on its result. */
export const checkMs = 1_000;
/**
 * For the connection and the check of a probe. An overloaded server takes a second. If a table is locked, statements fail
 * after two seconds (`lock_timeout`), which counts as a response.
 */
export const probeTimeoutMs = 1_500;

/** Rejects with TimeoutError after `timeoutMs`. The work itself continues. */
export async function withTimeout<T>(
  work: Promise<T>,
  timeoutMs = responseTimeoutMs,
  onTimeout = () => {},
): Promise<T> {
  const { promise: timedOut, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new TimeoutError());
    onTimeout();
  }, timeoutMs);
  try {
    return await Promise.race([work, timedOut]);
  } finally {
    clearTimeout(timer);
  }
}
