import { TimeoutError } from '../errors.ts';

/** For the response to a statement, or to all statements of a read. The server gives up earlier. */
export const responseTimeoutMs = 4_000;
/** For opening a connection, and for resolving a host name. */
export const connectTimeoutMs = 2_000;

/** Rejects with TimeoutError after `timeoutMs`. The work itself continues. */
export async function withTimeout<T>(
  work: Promise<T>,
  onTimeout = () => {},
  timeoutMs = responseTimeoutMs,
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
