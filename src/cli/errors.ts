/**
 * Why a command failed, and what a person can do about it: messages without secrets, and the exit status.
 */
import { Problem } from '../problem.ts';
import { StorageFailure, UsageError, Refusal } from '../refusal.ts';
import { redactTokens } from '../access/token.ts';
import { systemReason } from '../shared/system-errors.ts';

/** Exit status if a person has to act first. A service manager can exclude it from restarts (decisions 16 and 17). */
export const storageFailureStatus = 3;

export function exitStatusOf(error: unknown): number {
  if (error instanceof UsageError) return 2;
  return error instanceof StorageFailure ? storageFailureStatus : 1;
}

/**
 * Why a command failed, including the cause, which clients never see. Undefined for a defect: its stack is
 * shown instead.
 */
export function reasonOf(error: unknown): string | undefined {
  if (error instanceof Refusal) return error.message;
  if (error instanceof Problem) {
    if (error.kind === 'internal-error') return undefined;
    return error.cause === undefined ? error.detail : `${error.detail} Cause: ${causeOf(error)}.`;
  }
  // An error of the operating system or of a database driver.
  return error instanceof Error && 'code' in error ? error.message : undefined;
}

/** The message of the innermost cause. */
export function causeOf(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  if (error instanceof Error && error.cause !== undefined) return causeOf(error.cause);
  // A host with several addresses has an error for each.
  if (error instanceof AggregateError) return error.errors.map(causeOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}

/** Returns a handler for a failed import of an optional package, which refuses if the package is not installed. */
export function refuseMissing(name: string): (cause: unknown) => never {
  return (cause) => {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND')) {
      throw cause;
    }
    const message = `The package ${name} is not installed. Install it with "npm install ${name}".`;
    throw new Refusal(message, { cause });
  };
}

/** Returns a handler for a failed read of a file, which refuses with the reason and a solution. */
export function refuseUnreadable(what: string, ...solution: string[]): (cause: unknown) => never {
  return (cause) => {
    const reason = systemReason(cause, 'there is no such file');
    if (reason === undefined) throw cause;
    throw new Refusal([`Cannot read ${what}: ${reason}.`, ...solution].join(' '), { cause });
  };
}

/** Removes passwords and tokens from a message. */
export function redactSecrets(text: string): string {
  return redactTokens(replacePasswords(text, ':...'));
}

/**
 * Replaces the password, and the colon before it, in each address of a database or of Redis in `text`. Also finds
 * mistyped addresses.
 */
export function replacePasswords(text: string, replacement: string): string {
  return text.replace(
    /(\b(?:postgres(?:ql)?|rediss?):\/*[^\s:@/]*):[^\s@]*@/gi,
    `$1${replacement}@`,
  );
}
