import type { DatabaseSync } from 'node:sqlite';
import { sleepSync } from './sleep.ts';
import { isLocked } from './errors.ts';
import { nowMs } from './writes.ts';

/** How often a writer asks for the lock that another process holds, which takes a tenth of a core. */
const lockPollMs = 0.25;

/**
 * Begins to write. Waits for the lock that other processes hold until `untilMs` of nowMs(), then throws
 * SQLite's error. SQLite would wait too, but in sleeps of up to 100 ms, in which the others take the lock
 * again and again: with several workers that write at full load, one would starve. Blocks the thread that
 * it is called on.
 */
export function begin(database: DatabaseSync, untilMs: number, pollMs = lockPollMs): void {
  database.exec('PRAGMA busy_timeout = 0');
  for (;;) {
    try {
      // IMMEDIATE: a read that turns into a write later is refused whatever the timeout.
      database.exec('BEGIN IMMEDIATE');
      return;
    } catch (error) {
      if (!isLocked(error) || nowMs() > untilMs) throw error;
      sleepSync(pollMs);
    }
  }
}
