/**
 * Waiting for locks of other processes, which blocks the thread.
 */
import type { DatabaseSync } from 'node:sqlite';
import { isLocked } from '../errors.ts';

/** How often to retry while another process holds a lock. At first, polling takes a tenth of a core. */
const pollMs = 0.25;
/** The part of the wait so far that is added to each pause. */
const slowdown = 0.01;

/**
 * Begins a write transaction. Waits for the write lock until `deadlineMs`. SQLite's own wait sleeps up to 100 ms between
 * attempts: with several workers under full load, one of them would starve.
 */
export function beginImmediate(database: DatabaseSync, deadlineMs: number): void {
  database.exec('PRAGMA busy_timeout = 0');
  // Not BEGIN: upgrading a read transaction to a write transaction can fail at once, despite a timeout.
  retryWhileLocked(() => database.exec('BEGIN IMMEDIATE'), deadlineMs);
}

/** Repeats `work` until no other process has a lock that it needs, or until `deadlineMs`. */
export function retryWhileLocked<T>(work: () => T, deadlineMs: number): T {
  const startedMs = nowMs();
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isLocked(error) || nowMs() > deadlineMs) throw error;
      sleepSync(pollMs + slowdown * (nowMs() - startedMs));
    }
  }
}

/** The clock of all deadlines here. All threads share it: performance.now() starts at 0 in each. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1_000_000;
}

const sleepCell = new Int32Array(new SharedArrayBuffer(4)); // never notified

/** Blocks this thread for `ms` milliseconds. */
export function sleepSync(ms: number): void {
  Atomics.wait(sleepCell, 0, 0, ms);
}
