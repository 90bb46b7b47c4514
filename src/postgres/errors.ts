/**
 * Errors of the server by SQLSTATE (PostgreSQL documentation, appendix A), never by text or by the
 * name of a constraint, which engines that span machines change.
 */
import { DatabaseError } from 'pg';
import { Problem, storageFull, storageUnavailable } from '../problem.ts';
import { Refusal, type RefusalKind } from '../refusal.ts';

/** The server is not there for us now. That is told where it is noticed: pg has no class or code for it. */
class Unavailable extends Error {}

/** A connection could not be made, or is lost. The cause is what the system or pg reports of it. */
export class ConnectionError extends Unavailable {
  override readonly name = 'ConnectionError';

  constructor(cause: unknown) {
    super('no connection to the database server', { cause });
  }
}

/** No answer in time. The connection may still be good, and the server still at it. */
export class TimeoutError extends Unavailable {
  override readonly name = 'TimeoutError';
  override readonly message = 'the database takes too long to answer';
}

/** The schema is older than this program, and a process brings it up. */
export class MigrationInProgress extends Unavailable {
  override readonly name = 'MigrationInProgress';
  override readonly message = 'the database is being upgraded to a newer schema';
}

/** A server that answers, and cannot be written to: a standby, or one that has become one. */
export class ReadOnlyServer extends Unavailable {
  override readonly name = 'ReadOnlyServer';
  override readonly message = 'the server takes reads alone';
}

export const sqlState = {
  serializationFailure: '40001',
  deadlockDetected: '40P01',
  uniqueViolation: '23505',
  invalidStatementName: '26000',
  duplicateSchema: '42P06',
  duplicateTable: '42P07',
  duplicateObject: '42710',
  undefinedTable: '42P01',
  invalidSchema: '3F000',
  diskFull: '53100',
  lockNotAvailable: '55P03',
} as const;

/** The code of an error that the server answered with; undefined where it did not. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.code : undefined;
}

/** True where the same transaction may succeed when it is tried again; it has changed nothing. */
export function isRetryable(error: unknown): boolean {
  return retryableCodes.has(codeOf(error));
}

const retryableCodes = new Set<string | undefined>([
  sqlState.serializationFailure,
  sqlState.deadlockDetected,
  // It was sent behind the one that was to prepare it, and that one failed.
  sqlState.invalidStatementName,
]);

/** True where the server refused one statement and is there for the next. */
export function isStatementError(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && !ending.test(code);
}

/**
 * True where the server or the connection is gone: what became of the last statement is not known from
 * the error.
 */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error);
  return code === undefined ? error instanceof Unavailable : ending.test(code);
}

/** True where something else failed than the server, the connection or the statement: our own code, say. */
export function isDefect(error: unknown): boolean {
  return !isStatementError(error) && !isConnectionLost(error);
}

/** A connection that ends, a server that is none for us any more, and what engines say when they do not know. */
const ending = /^(?:08|25006|25P03|40003|57P|XX)/;

/**
 * Codes, and classes of them, of a server that cannot do it now: no defect of the statement. A user, a
 * right, a database or a table that is gone may be about to be made anew, from a backup say.
 */
const passing =
  /^(?:08|25006|26000|28|3D000|3F000|40001|40P01|40003|42501|42P01|53|55P03|57|58|F0)/;

/** The Problem that an error means where nothing was changed. A defect passes through as it is. */
export function problemOf(error: unknown): unknown {
  if (error instanceof Problem) return error;
  const code = codeOf(error);
  if (code === sqlState.diskFull) return storageFull(error);
  if (code === undefined ? error instanceof Unavailable : passing.test(code)) {
    return storageUnavailable(error);
  }
  return error;
}

/** What a person has to mend: waiting for the server does not help. Undefined for everything else. */
export function refusalFor(error: unknown): Refusal | undefined {
  const code = codeOf(error) ?? systemCodeOf(error);
  const [, reason, kind] = refusals.find(([codes]) => codes.test(code)) ?? [];
  return reason === undefined ? undefined : new Refusal(reason, { kind, cause: error });
}

/** What pg says; it has no code for that. */
const withoutTls = 'The server does not support SSL connections';

const refusals: readonly (readonly [codes: RegExp, reason: string, kind?: RefusalKind])[] = [
  [/^28/, 'The database server refuses the user or the password of the address.'],
  [/^3D000$/, 'The server has no database of the name in the address.', 'no-database'],
  [
    /^42501$/,
    'The user of the address may not create what Plant Store needs. Grant CREATE on the database.',
  ],
  [
    /ALTNAME/,
    "The database server's certificate is not for this host.",
    'certificate-of-other-host',
  ],
  [/^NO_TLS$/, 'The database server does not speak TLS.', 'no-tls'],
  [/CERT_HAS_EXPIRED/, "The database server's certificate has expired."],
  [
    /CERT|SIGNATURE|ISSUER/,
    "The database server's certificate cannot be verified.",
    'unknown-authority',
  ],
];

function systemCodeOf(error: unknown): string {
  const cause = error instanceof ConnectionError ? error.cause : undefined;
  if (cause instanceof Error && cause.message === withoutTls) return 'NO_TLS';
  return cause instanceof Error && 'code' in cause ? String(cause.code) : '';
}
