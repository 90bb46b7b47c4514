import { TimeoutError } from './errors.ts';

/** What an answer may take, of a statement or of all that a read needs; the server gives up before that. */
export const responseTimeoutMs = 4_000;
/** What a connection may take to be made, and a host to be found. */
export const connectTimeoutMs = 2_000;

/** Rejects with TimeoutError where it takes longer; what is under way goes on, and nobody waits for it. */
export async function withTimeout<T>(
  answer: Promise<T>,
  onLate = () => {},
  msMax = responseTimeoutMs,
): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new TimeoutError());
    onLate();
  }, msMax);
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
