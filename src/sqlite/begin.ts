import type { DatabaseSync } from 'node:sqlite';
import { sleepSync } from './sleep.ts';
import { isLocked } from './errors.ts';
import { nowMs } from './clock.ts';

/** How often to retry while another process holds the write lock. Polling takes a tenth of a core. */
const lockPollMs = 0.25;

/**
 * Begins a write transaction. Blocks the thread until it gets the write lock. After `deadlineMs` (by nowMs()),
 * throws SQLite's error.
 *
 * SQLite's busy timeout sleeps up to 100 ms between attempts. With several workers under full load, one of them
 * would starve.
 */
export function beginImmediate(
  database: DatabaseSync,
  deadlineMs: number,
  pollMs = lockPollMs,
): void {
  database.exec('PRAGMA busy_timeout = 0');
  for (;;) {
    try {
      // Not BEGIN: upgrading a read transaction to a write transaction can fail at once, despite a timeout.
      database.exec('BEGIN IMMEDIATE');
      return;
    } catch (error) {
      if (!isLocked(error) || nowMs() > deadlineMs) throw error;
      sleepSync(pollMs);
    }
  }
}
