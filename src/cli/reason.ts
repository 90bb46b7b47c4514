import { Problem } from '../problem.ts';
import { DiskFailure, UsageError, Refusal } from '../refusal.ts';
import { messageOf } from './advice.ts';

/** The exit status of a process that must not go on with the disk that it has. */
export const diskFailureStatus = 3;

/** The exit status of a command that failed. */
export function statusOf(error: unknown): number {
  if (error instanceof UsageError) return 2;
  return error instanceof DiskFailure ? diskFailureStatus : 1;
}

/**
 * Why something failed, for who sits at the terminal: with the cause, which clients are never told.
 * Undefined for a defect, which shows its stack.
 */
export function reasonOf(error: unknown): string | undefined {
  if (error instanceof Refusal) return messageOf(error);
  if (error instanceof Problem) {
    if (error.kind === 'internal-error') return undefined;
    return error.cause === undefined
      ? error.detail
      : `${error.detail} The cause: ${causeOf(error)}.`;
  }
  // Of the system or of a database.
  return error instanceof Error && 'code' in error ? error.message : undefined;
}

/** What lies behind an error, in the words of the system or of a database. */
export function causeOf(error: unknown): string {
  if (error instanceof Refusal) return messageOf(error);
  if (error instanceof Error && error.cause !== undefined) return causeOf(error.cause);
  // Each address of a host has an error of its own.
  if (error instanceof AggregateError) return error.errors.map(causeOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}
