import type { DatabaseSync } from 'node:sqlite';
import { sleepSync } from './sleep.ts';
import { isLocked } from './errors.ts';
import { nowMs } from './writes.ts';

/** How often to retry while another process holds the write lock. This costs a tenth of a core. */
const lockPollMs = 0.25;

/**
 * Begins a write transaction. Waits for the write lock until `deadlineMs` (as of nowMs()), then throws SQLite's
 * error. It blocks the thread.
 *
 * SQLite's own wait sleeps up to 100 ms between attempts: among several workers under full load, one would
 * starve.
 */
export function beginImmediate(
  database: DatabaseSync,
  deadlineMs: number,
  pollMs = lockPollMs,
): void {
  database.exec('PRAGMA busy_timeout = 0');
  for (;;) {
    try {
      // A read transaction that becomes a write one can fail at once, whatever the timeout.
      database.exec('BEGIN IMMEDIATE');
      return;
    } catch (error) {
      if (!isLocked(error) || nowMs() > deadlineMs) throw error;
      sleepSync(pollMs);
    }
  }
}
