/**
 * How a process ends at a signal.
 */
import type { Logger } from 'pino';

export const terminationSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** During `work`, a signal ends the process with status 130, and runs its handlers of `exit`, which clean up. */
export async function withExitOnSignal<T>(work: () => Promise<T>): Promise<T> {
  const exit = () => process.exit(130);
  for (const signal of terminationSignals) process.once(signal, exit);
  try {
    return await work();
  } finally {
    for (const signal of terminationSignals) process.off(signal, exit);
  }
}

/** The drain takes at most 10 seconds (drain.ts); the rest is for closing the storage. */
export const maxShutdownMs = 15_000;

/**
 * Kills the process if shutting down takes too long, for example because a disk hangs. SIGKILL shows a
 * service manager that the shutdown failed, and `process.exit()` would wait for the hanging thread.
 */
export function startShutdownTimeout(log: Logger, extraMs = 0): void {
  setTimeout(() => {
    log.error('shutdown timed out');
    process.kill(process.pid, 'SIGKILL');
  }, maxShutdownMs + extraMs).unref();
}
