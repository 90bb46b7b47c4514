/**
 * Classifies errors of the server by SQLSTATE (PostgreSQL documentation, appendix A), never by text or by the
 * name of a constraint. Distributed engines change those names.
 */
import { DatabaseError } from 'pg';
import { Problem, storageFull, storageUnavailable } from '../problem.ts';
import { Refusal } from '../refusal.ts';

/** The server is not available now. pg has no class or code for that. */
export class Unavailable extends Error {}

/** A connection could not be opened or was lost. The cause is the error of the system or of pg. */
export class ConnectionError extends Unavailable {
  constructor(cause: unknown) {
    super('no connection to the database server', { cause });
  }
}

/** No response in time. The connection can still work, and the statement can still be in progress. */
export class TimeoutError extends Unavailable {
  override readonly message = 'the database did not respond in time';
}

/** The server responds, but is read-only or another node than expected. Another host of the address can be the right one. */
export class WrongServer extends Unavailable {}

/** No host of the address can be used. The message has the reason of each. */
export class NoHost extends Unavailable {
  /** The error by which it is classified: that of the host which can be the primary. */
  readonly main: unknown;

  constructor(reasons: string, main: unknown) {
    super(reasons);
    this.main = main;
  }
}

export const sqlState = {
  inFailedTransaction: '25P02',
  notNullViolation: '23502',
  undefinedTable: '42P01',
  invalidSchema: '3F000',
  diskFull: '53100',
  lockNotAvailable: '55P03',
} as const;

/** The SQLSTATE of an error from the server; undefined for any other error. */
export function codeOf(error: unknown): string | undefined {
  if (error instanceof NoHost) return codeOf(error.main);
  return error instanceof DatabaseError ? error.code : undefined;
}

/** Whether the transaction can succeed if it is retried. It has changed nothing. */
export function isRetryable(error: unknown): boolean {
  return retryableCodes.test(codeOf(error) ?? '');
}

/** A conflict, a deadlock, and a statement that is not prepared, because an earlier one that prepares it has failed. */
const retryableCodes = /^(?:40001|40P01|26000)$/;

/** Whether the server refused one statement, and the connection still works. */
export function isStatementError(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && !connectionLostCodes.test(code);
}

/** Whether the server or the connection is gone. The error does not show whether the last statement was run. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error);
  return code === undefined ? error instanceof Unavailable : connectionLostCodes.test(code);
}

/** Whether it is any other error, such as a bug in our own code. */
export function isDefect(error: unknown): boolean {
  return !isStatementError(error) && !isConnectionLost(error);
}

/**
 * Whether the server reported an internal error. On one server, the data of the statement causes it. On Citus, a lost
 * connection between nodes can cause it too.
 */
export function isInternalError(error: unknown): boolean {
  return codeOf(error)?.startsWith('XX') === true;
}

/**
 * Waits for all responses, so that the connection is free, then rejects with the first error. A defect comes
 * first, because it closes the connection and so fails the other statements. A statement that was refused because
 * another one in its transaction failed comes last.
 */
export async function settled<const T extends readonly Promise<unknown>[]>(
  responses: T,
): Promise<{ -readonly [at in keyof T]: Awaited<T[at]> }> {
  const results = await Promise.allSettled(responses);
  const failures = results.filter((result) => result.status === 'rejected');
  const failure =
    failures.find(({ reason }) => isDefect(reason)) ??
    failures.find(({ reason }) => codeOf(reason) !== sqlState.inFailedTransaction) ??
    failures[0];
  if (failure !== undefined) throw failure.reason;
  return Promise.all(responses);
}

/** The connection ended, the server stopped or became read-only, or the outcome is unknown. */
const connectionLostCodes = /^(?:08|25006|25P03|40003|57P|XX)/;

/**
 * Codes, and classes of codes, that are not a defect of the statement: it can succeed later. A user, privilege,
 * database or table that is missing can be restored from a backup.
 */
const unavailableCodes =
  /^(?:08|25006|26000|28|3D000|3F000|40001|40P01|40003|42501|42P01|53|55P03|57|58|F0)/;

/** The Problem for an error, if nothing was changed. Returns a defect unchanged. */
export function problemOf(error: unknown): unknown {
  if (error instanceof Problem) return error;
  if (error instanceof Refusal) return storageUnavailable(error);
  const code = codeOf(error);
  // Disk full (53100): the server has rolled the write back. It is not retried, and the client gets 503. If the
  // WAL cannot grow, the server crashes instead, and the writer checks the outcome (writer.ts).
  if (code === sqlState.diskFull) return storageFull(error);
  if (code === undefined ? error instanceof Unavailable : unavailableCodes.test(code)) {
    return storageUnavailable(error);
  }
  return error;
}

/** The Refusal for an error that a person has to fix, because waiting does not help. Otherwise undefined. */
export function refusalFor(error: unknown): Refusal | undefined {
  const code = codeOf(error) ?? systemCodeOf(error);
  const [, reason] = refusals.find(([codes]) => codes.test(code)) ?? [];
  return reason === undefined ? undefined : new Refusal(reason, { cause: error });
}

/** A message of pg, which has no code for this. */
const noTlsMessage = 'The server does not support SSL connections';

/** The time limits of the session do not apply: a stopped process could keep a store locked. */
export const poolerReason =
  'The database connection does not accept or keep the time limits of its session. Connect to the server itself, not to a pooler such as PgBouncer.';

const refusals: readonly (readonly [codes: RegExp, reason: string])[] = [
  [/^08P01$/, poolerReason], // PgBouncer refuses startup parameters with it
  [/^28/, 'The database server refuses the user or the password in the address. Check both.'],
  [/^3D000$/, 'The server has no database with the name in the address. Create it with createdb.'],
  [
    /^42501$/,
    'The user in the address lacks a privilege that Plant Store needs. Grant CREATE on the database.',
  ],
  [
    /ALTNAME/,
    "The database server's certificate is not valid for this host. Use a host name that the certificate covers in the address.",
  ],
  [
    /^NO_TLS$/,
    'The database server does not support TLS. Enable TLS on the server. If nobody else can read the network traffic, you can add ?sslmode=disable to the address instead.',
  ],
  [/CERT_HAS_EXPIRED/, "The database server's certificate has expired. Renew it."],
  [
    /CERT|SIGNATURE|ISSUER/,
    "The database server's certificate cannot be verified. Add the CA certificate to the address with ?sslrootcert=FILE.",
  ],
];

function systemCodeOf(error: unknown): string {
  if (error instanceof NoHost) return systemCodeOf(error.main);
  const cause = error instanceof ConnectionError ? error.cause : undefined;
  if (cause instanceof Error && cause.message === noTlsMessage) return 'NO_TLS';
  return cause instanceof Error && 'code' in cause ? String(cause.code) : '';
}
