/**
 * Waits with a limit. `AbortSignal.any()` and `.timeout()` would need newer browsers, and hold memory after the wait.
 */

/** When a wait ends early. */
interface Limits {
  timeoutMs: number;
  /** Returns the reason with which the signal of `work` aborts after this time. */
  timeout: () => unknown;
  /** If it aborts, the signal of `work` aborts with the same reason. */
  signal?: AbortSignal | undefined;
}

/** Runs `work` with a signal. Afterwards, no timer and no listener is left. */
export async function within<T>(
  { timeoutMs, timeout, signal }: Limits,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const end = new AbortController();
  const abort = () => end.abort(signal?.reason);
  const timer = setTimeout(() => end.abort(timeout()), timeoutMs);
  signal?.addEventListener('abort', abort);
  try {
    return await work(end.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}

/** The signal of those who have none. */
const neverAborts = new AbortController().signal;

/** Waits. Throws the reason of the signal if it aborts. */
export async function pause(ms: number, signal = neverAborts): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const elapsed = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await unlessAborted(elapsed, signal).finally(() => clearTimeout(timer));
}

/** The result of the promise. Throws the reason of the signal if it aborts. */
export async function unlessAborted<T>(promise: Promise<T>, signal = neverAborts): Promise<T> {
  signal.throwIfAborted();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => (abort = () => reject(signal.reason)));
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
