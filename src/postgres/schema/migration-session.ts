/**
 * The right to migrate is a lock of the session that migrates, so it ends with the session. On a Citus cluster, the
 * lock is on the coordinator.
 */
import { sql, type Connection } from '../pool/connection.ts';
import { isStatementError } from '../errors.ts';
import type { Pool } from '../pool/pool.ts';

/** Only sessions with this name change the schema. */
const applicationName = 'plant-store migration';
/** "Plnt": other programs that use the database should not have the same number. */
const lockNumber = 0x506c6e74;
/** A process that was paused loses the lock after this time, which is longer than any pause of a migration. */
const idleSessionTimeoutMs = 20_000;
/** How soon the server notices, while it runs a statement, that the process is gone. */
const connectionCheckMs = 1_000;

const lockSql = sql<readonly [isLocked: boolean]>`SELECT pg_try_advisory_lock(${lockNumber})`;

// A role or a database can set the other limits, if the server has them. Without cached connections to workers, none of
// them is idle.
const settings = `
  RESET ALL;
  SET application_name = '${applicationName}';
  SET statement_timeout = 0;
  SELECT set_config(name, CASE name WHEN 'idle_session_timeout' THEN '${idleSessionTimeoutMs}' ELSE '0' END, false)
  FROM pg_settings
  WHERE name IN ('idle_session_timeout', 'transaction_timeout', 'citus.max_cached_conns_per_worker')`;

/**
 * Runs `work` in a session without time limits for its statements, and then ends the session. Resolves to false if another
 * session has the lock.
 */
export async function withMigrationLock(
  server: Pool,
  work: (session: Connection) => Promise<void>,
): Promise<boolean> {
  return server.withConnection(async (session) => {
    const [[isLocked] = []] = await session.query(lockSql, []);
    if (isLocked !== true) return false;
    try {
      await session.command(settings);
      // Not every operating system supports this setting.
      await session
        .command(`SET client_connection_check_interval = ${connectionCheckMs}`)
        .catch((error: unknown) => {
          if (!isStatementError(error)) throw error;
        });
      await work(session);
      return true;
    } finally {
      session.destroy(); // its settings are unsuitable for anything else
    }
  });
}
