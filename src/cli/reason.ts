import { Problem } from '../problem.ts';
import { Refusal } from '../refusal.ts';

/**
 * Why something failed, for who sits at the terminal: with the cause, which clients are never told.
 * Undefined for a defect, which shows its stack.
 */
export function reasonOf(error: unknown): string | undefined {
  if (error instanceof Refusal) return error.message;
  if (error instanceof Problem) {
    const cause = causeOf(error);
    return cause === '' ? error.detail : `${error.detail} The cause: ${cause}.`;
  }
  // Of the system or of a database.
  return error instanceof Error && 'code' in error ? error.message : undefined;
}

function causeOf({ cause }: Error): string {
  // Each address of a host has an error of its own.
  if (cause instanceof AggregateError) return cause.errors.map(({ message }) => message).join(', ');
  return cause instanceof Error ? cause.message : '';
}
