import { Problem } from '../problem.ts';
import { DiskFailure, UsageError, Refusal } from '../refusal.ts';
import { messageOf } from './advice.ts';

/** Exit status after a disk failure. A service manager can hold back the restart on it (decision 17). */
export const diskFailureStatus = 3;

export function exitStatusOf(error: unknown): number {
  if (error instanceof UsageError) return 2;
  return error instanceof DiskFailure ? diskFailureStatus : 1;
}

/**
 * Why a command failed, including the cause, which clients never see. Undefined for a defect: its stack is
 * shown instead.
 */
export function reasonOf(error: unknown): string | undefined {
  if (error instanceof Refusal) return messageOf(error);
  if (error instanceof Problem) {
    if (error.kind === 'internal-error') return undefined;
    return error.cause === undefined ? error.detail : `${error.detail} Cause: ${causeOf(error)}.`;
  }
  // An error of the operating system or of a database driver.
  return error instanceof Error && 'code' in error ? error.message : undefined;
}

/** The message of the innermost cause. */
export function causeOf(error: unknown): string {
  if (error instanceof Refusal) return messageOf(error);
  if (error instanceof Error && error.cause !== undefined) return causeOf(error.cause);
  // A host with several addresses has an error for each.
  if (error instanceof AggregateError) return error.errors.map(causeOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}
