/**
 * The right to migrate: a lease that one process holds at a time and renews. If that process dies or hangs, the
 * others wait for up to ten seconds.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { prepared, type Connection, type Statement } from './connection.ts';
import { TimeoutError } from './errors.ts';
import type { Pool } from './pool.ts';

/** How long a lease lasts if it is not renewed. */
const leaseSeconds = 10;
const renewMs = 3_000;
/** How long to wait until terminated sessions have ended. */
const terminateTimeoutMs = 10_000;
const terminatePollMs = 100;

/** Sessions with this name change the schema, and no others do. */
const applicationName = 'plant-store migration';

const leaseSql = {
  acquire: prepared<readonly [number: number]>(
    'acquire_lease',
    `
      UPDATE plant_store.migrations
      SET holder = $1, held_until = now() + interval '${leaseSeconds} seconds'
      -- A time further ahead means that the clock was set back.
      WHERE id = 1 AND (
        held_until < now() OR held_until > now() + interval '${leaseSeconds + 1} seconds' OR holder = $1
      )
      RETURNING version`,
  ),
  // Unlike `acquire`, fails if another process has held the lease since and released it.
  renew: prepared<readonly [number: number]>(
    'renew_lease',
    `
      UPDATE plant_store.migrations SET held_until = now() + interval '${leaseSeconds} seconds'
      WHERE id = 1 AND holder = $1
      RETURNING version`,
  ),
  setNumber: prepared(
    'set_schema_number',
    'UPDATE plant_store.migrations SET version = $2 WHERE id = 1 AND holder = $1 RETURNING id',
  ),
  release: prepared(
    'release_lease',
    `
      UPDATE plant_store.migrations SET holder = '', held_until = '-infinity'
      WHERE id = 1 AND holder = $1`,
  ),
  sessions: prepared<readonly [pid: number, isThis: boolean]>(
    'migration_sessions',
    `
      SELECT pid, pid = pg_backend_pid() FROM pg_stat_activity
      WHERE datname = current_database() AND usename = session_user
        AND application_name = '${applicationName}'`,
  ),
  terminateSession: prepared('terminate_session', 'SELECT pg_terminate_backend($1)'),
  // Timeouts that a role or a database can set, if the server supports them. A worker of a cluster can have them too:
  // without cached connections, no session there is idle.
  disableTimeouts: prepared(
    'disable_timeouts',
    `
      SELECT set_config(name, '0', false) FROM pg_settings
      WHERE name IN ('idle_session_timeout', 'transaction_timeout', 'citus.max_cached_conns_per_worker')`,
  ),
} satisfies Record<string, Statement>;

export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
  override readonly message = 'another process has taken over the migration';
}

export class Lease {
  readonly #pool: Pool;
  readonly #holder: string;

  /** `holder` must be unique. */
  constructor(pool: Pool, holder: string) {
    this.#pool = pool;
    this.#holder = holder;
  }

  /** Returns the schema number, or undefined if another process has the lease. */
  async acquire(connection: Connection): Promise<number | undefined> {
    const [row] = await connection.query(leaseSql.acquire, [this.#holder]);
    return row?.[0];
  }

  /** Call it before each statement. Returns the schema number. Throws LeaseLost. */
  async renew(connection: Connection): Promise<number> {
    const [row] = await connection.query(leaseSql.renew, [this.#holder]);
    if (row === undefined) throw new LeaseLost();
    return row[0];
  }

  /** Stores the schema number. Throws LeaseLost. */
  async setNumber(connection: Connection, number: number): Promise<void> {
    const rows = await connection.query(leaseSql.setNumber, [this.#holder, number]);
    if (rows.length === 0) throw new LeaseLost();
  }

  /**
   * Runs `work` in a session without timeouts, and renews the lease meanwhile. First terminates the sessions of
   * earlier holders, so that none of their statements runs at the same time.
   *
   * Rejects with LeaseLost if another process takes over, and with the reason of `stop` if that is aborted. If the
   * lease is not lost, a failure cancels the statement in progress and releases the lease. The schema then gets the
   * number that `numberAfterFailure` returns, if any.
   */
  async hold(
    work: (session: Connection) => Promise<void>,
    numberAfterFailure: () => number | undefined,
    stop: AbortSignal,
  ): Promise<void> {
    const aborted = Promise.withResolvers<never>();
    aborted.promise.catch(() => {}); // it can be rejected before anything awaits it
    const onStop = () => aborted.reject(stop.reason);
    stop.addEventListener('abort', onStop);
    const renewing = setInterval(() => {
      this.#pool
        .withConnection((connection) => this.renew(connection))
        .catch((error: unknown) => {
          // After any other error, the next statement renews again. A new holder terminates the session.
          if (error instanceof LeaseLost) aborted.reject(error);
        });
    }, renewMs);
    try {
      stop.throwIfAborted();
      await this.#pool.withConnection(async (session) => {
        try {
          // The name comes first, so that the next holder can terminate this session too.
          await session.command(
            `RESET ALL; SET application_name = '${applicationName}'; SET statement_timeout = 0`,
          );
          await session.query(leaseSql.disableTimeouts, []);
          await Promise.race([
            this.#terminateOthers(session).then(() => work(session)),
            aborted.promise,
          ]);
        } finally {
          session.destroy(); // its settings are unsuitable for anything else
        }
      });
      await this.#pool.withConnection((connection) => this.#release(connection));
    } catch (error) {
      const isOurs = !(error instanceof LeaseLost);
      if (isOurs) await this.#handOver(numberAfterFailure()).catch(() => {}); // if it cannot, the lease expires
      throw error;
    } finally {
      clearInterval(renewing);
      stop.removeEventListener('abort', onStop);
    }
  }

  /** Renews before each attempt, so that it cannot terminate the session of a later holder. */
  async #terminateOthers(connection: Connection): Promise<void> {
    const deadlineMs = performance.now() + terminateTimeoutMs;
    while (performance.now() < deadlineMs) {
      await this.renew(connection);
      const sessions = await connection.query(leaseSql.sessions, []);
      const others = sessions.filter(([, isThis]) => !isThis);
      if (others.length === 0) return;
      for (const [pid] of others) await connection.query(leaseSql.terminateSession, [pid]);
      await pause(terminatePollMs);
    }
    throw new TimeoutError();
  }

  /** Terminates our session first: a server notices a closed connection only when its statement ends. */
  async #handOver(number: number | undefined): Promise<void> {
    await this.#pool.withConnection(async (connection) => {
      await this.#terminateOthers(connection);
      if (number !== undefined) await this.setNumber(connection, number);
      await this.#release(connection);
    });
  }

  async #release(connection: Connection): Promise<void> {
    await connection.query(leaseSql.release, [this.#holder]);
  }
}
