/** Why a storage cannot be used, if a command or an option helps. */
export type RefusalKind =
  // Files.
  | 'no-file'
  | 'unusable-path'
  | 'not-writable'
  | 'not-a-file'
  | 'foreign-file'
  | 'replaced-file'
  | 'file-exists'
  | 'not-a-backup'
  // Schemas.
  | 'newer-schema'
  | 'missing-schema'
  // Servers.
  | 'missing-database'
  | 'tls-unsupported'
  | 'certificate-of-other-host'
  | 'unknown-authority';

/**
 * An operation is impossible; the message describes why. If there is a kind, cli/errors.ts adds the command or
 * option that helps, because storages do not depend on the command line.
 */
export class Refusal extends Error {
  override readonly name: string = 'Refusal';
  readonly kind: RefusalKind | undefined;

  constructor(message: string, options: { kind?: RefusalKind | undefined; cause?: unknown } = {}) {
    super(message, options);
    this.kind = options.kind;
  }
}

/** The input is malformed; nothing was attempted. */
export class UsageError extends Refusal {
  override readonly name = 'UsageError';
}

/** The disk failed, or the database file is lost. A person has to check it before anything is written again. */
export class StorageFailure extends Refusal {
  override readonly name = 'StorageFailure';
}
