import { TooSlow } from './errors.ts';

/** What an answer may take, of a statement or of all that a read needs; the server gives up before that. */
export const answerMsMax = 4_000;

/** Rejects with TooSlow where it takes longer; what is under way goes on, and nobody waits for it. */
export async function inTime<T>(answer: Promise<T>, onLate = () => {}): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new TooSlow());
    onLate();
  }, answerMsMax);
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
