/**
 * Migrations on a Citus cluster: each statement is a transaction of its own, because Citus accepts one change of a schema
 * at a time. A migration that was interrupted runs again, so its statements must allow that.
 */
import type { Connection } from '../pool/connection.ts';
import { sql } from '../../sql/statement.ts';
import { distribute, runUnlimited } from './citus.ts';

/** Runs `work` while the session has the lock on the coordinator, and ends the session. */
export async function withClusterLock(
  session: Connection,
  lockNumber: number,
  work: () => Promise<void>,
): Promise<void> {
  try {
    // Otherwise sessions on workers would be idle, for which the role can have a time limit.
    await session.command('SET citus.max_cached_conns_per_worker = 0');
    await session.query(sql`SELECT pg_advisory_lock(${lockNumber})`, []);
    await work();
  } finally {
    session.destroy();
  }
}

/**
 * Splits at semicolons and removes comments, so no literal can contain a semicolon or two hyphens. Then distributes new
 * tables.
 */
export async function runStatements(
  session: Connection,
  text: string,
  lockTimeoutMs: number,
): Promise<void> {
  const statements = text.replace(/--.*$/gm, '').split(';');
  for (const statement of statements.map((each) => each.trim()).filter(Boolean)) {
    await runUnlimited(session, statement, lockTimeoutMs);
  }
  await distribute(session);
}
