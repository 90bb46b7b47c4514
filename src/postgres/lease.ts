/**
 * The right to migrate: a row that one process holds at a time, for as long as it renews it. One that dies
 * or hangs locks the others out for ten seconds.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { prepared, type Connection, type Statement } from './connection.ts';
import { TimeoutError } from './errors.ts';
import type { Pool } from './pool.ts';

/** How long it holds without being renewed. */
const leaseSeconds = 10;
const renewMs = 3_000;
/** How long a session that is told to end can take. */
const endMsMax = 10_000;
const endPollMs = 100;

/** Sessions with this name change the schema, and no others do. */
const applicationName = 'plant-store migration';

const leaseSql = {
  acquire: prepared<readonly [number: number]>(
    'acquire_lease',
    `
      UPDATE plant_store.migrations
      SET holder = $1, held_until = now() + interval '${leaseSeconds} seconds'
      -- A time further ahead is that of a clock that has been set back since.
      WHERE id = 1 AND (
        held_until < now() OR held_until > now() + interval '${leaseSeconds + 1} seconds' OR holder = $1
      )
      RETURNING version`,
  ),
  // Not one that has expired: another may have had it since, and be done.
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
  endSession: prepared('end_session', 'SELECT pg_terminate_backend($1)'),
  // Limits that a role or a database can have, if the server knows them.
  noLimits: prepared(
    'no_limits',
    `
      SELECT set_config(name, '0', false) FROM pg_settings
      WHERE name IN ('idle_session_timeout', 'transaction_timeout')`,
  ),
} satisfies Record<string, Statement>;

/** Another process has taken over. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
  override readonly message = 'another process has taken over the migration';
}

export class Lease {
  readonly #pool: Pool;
  readonly #holder: string;

  /** `holder` is the name of nobody else. */
  constructor(pool: Pool, holder: string) {
    this.#pool = pool;
    this.#holder = holder;
  }

  /** Returns the number of the schema, or undefined if another process has the lease. */
  async acquire(connection: Connection): Promise<number | undefined> {
    const [row] = await connection.query(leaseSql.acquire, [this.#holder]);
    return row?.[0];
  }

  /** Renews it before a statement. Throws LeaseLost. */
  async renew(connection: Connection): Promise<number> {
    const [row] = await connection.query(leaseSql.renew, [this.#holder]);
    if (row === undefined) throw new LeaseLost();
    return row[0];
  }

  /** Stores the number of the schema. Throws LeaseLost. */
  async setNumber(connection: Connection, number: number): Promise<void> {
    const rows = await connection.query(leaseSql.setNumber, [this.#holder, number]);
    if (rows.length === 0) throw new LeaseLost();
  }

  /**
   * Runs `work` in a session without limits of time, and renews the lease meanwhile. The sessions of those
   * who had the lease before are ended first: what they still do, or would do after a pause, cannot meet
   * ours. Rejects with LeaseLost if another takes over, and with the reason of `stop` once that is aborted.
   * After any other failure, the statement in progress is cancelled, the schema gets the number that `undo`
   * returns, if any, and others can take the lease.
   */
  async hold(
    work: (session: Connection) => Promise<void>,
    undo: () => number | undefined,
    stop: AbortSignal,
  ): Promise<void> {
    const broken = Promise.withResolvers<never>();
    broken.promise.catch(() => {}); // it may come before anybody waits for it
    const onStop = () => broken.reject(stop.reason);
    stop.addEventListener('abort', onStop);
    const renewing = setInterval(() => {
      this.#pool
        .withConnection((connection) => this.renew(connection))
        .catch((error: unknown) => {
          // If it could not ask, the next statement asks again; and who takes over ends the session.
          if (error instanceof LeaseLost) broken.reject(error);
        });
    }, renewMs);
    try {
      stop.throwIfAborted();
      await this.#pool.withConnection(async (session) => {
        try {
          await session.command(
            `RESET ALL; SET application_name = '${applicationName}'; SET statement_timeout = 0`,
          );
          await session.query(leaseSql.noLimits, []);
          await Promise.race([this.#endOthers(session).then(() => work(session)), broken.promise]);
        } finally {
          session.destroy(); // its settings are for nothing else
        }
      });
      await this.#pool.withConnection((connection) => this.#release(connection));
    } catch (error) {
      const isOurs = !(error instanceof LeaseLost);
      if (isOurs) await this.#handOver(undo()).catch(() => {}); // if it cannot, the lease expires
      throw error;
    } finally {
      clearInterval(renewing);
      stop.removeEventListener('abort', onStop);
    }
  }

  /** In a session with the name: one that has taken the lease is ended by whoever takes it next. */
  async #endOthers(connection: Connection): Promise<void> {
    for (const endMs = performance.now() + endMsMax; performance.now() < endMs;) {
      await this.renew(connection);
      const sessions = await connection.query(leaseSql.sessions, []);
      const others = sessions.filter(([, isThis]) => !isThis);
      if (others.length === 0) return;
      for (const [pid] of others) await connection.query(leaseSql.endSession, [pid]);
      await pause(endPollMs);
    }
    throw new TimeoutError();
  }

  /** A server does not notice that its client is gone until its statement ends. */
  async #handOver(number: number | undefined): Promise<void> {
    await this.#pool.withConnection(async (connection) => {
      await this.#endOthers(connection);
      if (number !== undefined) await this.setNumber(connection, number);
      await this.#release(connection);
    });
  }

  async #release(connection: Connection): Promise<void> {
    await connection.query(leaseSql.release, [this.#holder]);
  }
}
