/**
 * How a process ends at a signal.
 */
import cluster from 'node:cluster';
import type { Logger } from 'pino';

const terminationSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Calls `handle` at each signal that asks the process to end, until the result is disposed. */
export function onSignal(handle: (signal: NodeJS.Signals) => void): Disposable {
  for (const signal of terminationSignals) process.on(signal, handle);
  return {
    [Symbol.dispose]() {
      for (const signal of terminationSignals) process.off(signal, handle);
    },
  };
}

/** The drain takes at most 10 seconds (drain.ts); the rest is for closing the storage. */
export const maxShutdownMs = 15_000;

/**
 * Kills the process and its workers if shutting down takes too long, for example because a disk hangs. SIGKILL shows a
 * service manager that the shutdown failed, and `process.exit()` would wait for the hanging thread.
 */
export function startShutdownTimeout(log: Logger): void {
  setTimeout(() => {
    log.error('shutdown timed out');
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL');
    process.kill(process.pid, 'SIGKILL');
  }, maxShutdownMs).unref();
}
