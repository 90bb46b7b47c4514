import type { Logger } from 'pino';

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
