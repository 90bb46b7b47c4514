/**
 * Statements without time limits, such as migrations.
 */
import type { QueryArrayResult } from 'pg';
import { settled } from '../errors.ts';
import { sql, type Connection } from '../pool/connection.ts';

const timeoutsSql = sql<readonly [name: string]>`
  SELECT name FROM pg_settings
  WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`;

/**
 * Statements that leave a transaction the time limit for locks (0 for none) as its only one, on every machine of a Citus
 * cluster: sessions on workers have the limits of the role, and only `SET LOCAL` is passed on to them.
 */
export async function unlimitedSettings(
  connection: Connection,
  lockTimeoutMs: number,
): Promise<string> {
  const timeouts = await connection.query(timeoutsSql, []);
  return [
    `SET LOCAL citus.propagate_set_commands = 'local'`, // other servers accept any setting with a dot
    ...timeouts.map(([name]) => `SET LOCAL ${name} = 0`),
    `SET LOCAL lock_timeout = ${lockTimeoutMs}`,
  ].join(';');
}

/** Runs a statement in a transaction with these settings. */
export async function runUnlimited(
  connection: Connection,
  text: string,
  lockTimeoutMs: number,
): Promise<QueryArrayResult> {
  const settings = await unlimitedSettings(connection, lockTimeoutMs);
  // All at once: if this process stopped before COMMIT, no time limit would end the transaction.
  const [, result] = await settled([
    connection.command(`BEGIN ISOLATION LEVEL READ COMMITTED; ${settings}`),
    connection.commandWithoutDeadline(text),
    connection.commandWithoutDeadline('COMMIT'),
  ]);
  return result;
}
