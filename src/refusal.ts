/** Why a storage cannot be used, where there is something to type instead. */
export type RefusalKind =
  | 'unfinished-copy'
  // Of files.
  | 'no-place'
  | 'not-writable'
  | 'not-a-file'
  | 'foreign-file'
  | 'replaced-file'
  | 'name-taken'
  | 'no-backup'
  // Of schemas.
  | 'newer-schema'
  | 'no-schema'
  // Of servers.
  | 'no-database'
  | 'no-tls'
  | 'certificate-of-other-host'
  | 'unknown-authority';

/**
 * What was asked for cannot be done; the message tells a person why. Where there is a kind, cli/advice.ts
 * adds to it what to type instead: storages know no commands and no options.
 */
export class Refusal extends Error {
  override readonly name: string = 'Refusal';
  readonly kind: RefusalKind | undefined;

  constructor(message: string, options: { kind?: RefusalKind | undefined; cause?: unknown } = {}) {
    super(message, options);
    this.kind = options.kind;
  }
}

/** What was asked for is not well formed: there is nothing yet that could fail. */
export class UsageError extends Refusal {
  override readonly name = 'UsageError';
}

/** The disk has not kept what it was given: a person has to look at it. */
export class DiskFailure extends Refusal {
  override readonly name = 'DiskFailure';
}

/** A database that `copy` has not finished must not be taken for a whole one. */
export function unfinishedCopy(): Refusal {
  return new Refusal('The database holds a part of a copy.', { kind: 'unfinished-copy' });
}
