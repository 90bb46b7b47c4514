import type { Logger } from 'pino';

/** The drain takes at most 10 seconds (drain.ts); closing the storage takes as long as the disk does. */
const stopMsMax = 15_000;

/**
 * Call it when a stop begins. A disk that hangs in a sync would keep the process for as long: then it
 * kills itself, so that its status tells a service manager that it did not end well. No change is lost
 * that was acknowledged. `process.exit()` would wait for the thread that hangs.
 */
export function killUnlessStopped(log: Logger, moreMs = 0): void {
  setTimeout(() => {
    log.error('not stopped in time');
    process.kill(process.pid, 'SIGKILL');
  }, stopMsMax + moreMs).unref();
}
