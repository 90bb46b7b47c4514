/**
 * Whether the database can be used: creates or migrates its schema first, and later notices that a newer program
 * is going to change it.
 */
import { decodeSchema } from '../migrations.ts';
import { storageUnavailable } from '../problem.ts';
import { Refusal, unfinishedCopy } from '../refusal.ts';
import { distribute, refuseUnsafeWorkers } from './citus.ts';
import { prepared, refuseUnsafe, serverInfoSql, type Connection } from './connection.ts';
import {
  isConnectionLost,
  isStatementError,
  MigrationInProgress,
  problemOf,
  refusalFor,
  TimeoutError,
} from './errors.ts';
import {
  migrate,
  newestVersion,
  refuseUnusableSchema,
  schemaCacheMs,
  schemaSql,
} from './migrate.ts';
import { settled, type Pool } from './pool.ts';
import { withTimeout } from './timeout.ts';

export interface ReadinessOptions {
  /** Whether to create a schema if there is none. */
  create: boolean;
  /** Whether to distribute existing tables over the nodes of a cluster, however long it takes. */
  distribute?: boolean;
}

/** How long a request, or the start of the service, waits for the database to open. */
const openTimeoutMs = 2_000;
/** How long a request waits for a check of the schema. */
const schemaCheckTimeoutMs = 1_000;
/** A failed migration is retried after this time, because each attempt can lock tables or fill the disk. */
const migrationRetryMs = 60_000;

interface Opening {
  done: Promise<void>;
  sinceMs: number;
  isMigrating: boolean;
  /** When its result expires, even if it is a failure. */
  untilMs: number;
}

const unfinishedSql = prepared(
  'unfinished_copy',
  'SELECT 1 FROM plant_store.migrations WHERE copy_of IS NOT NULL',
);

export class Readiness {
  readonly #pool: Pool;
  readonly #options: ReadinessOptions;
  readonly #stop = new AbortController();
  #opening: Opening | undefined;
  /** When the next check of the schema is due. */
  #schemaUntilMs = 0;
  #schemaCheck: Promise<void> | undefined;

  constructor(pool: Pool, options: ReadinessOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  /**
   * Resolves when the database has a schema that can be used, however long a migration takes. Throws Refusal if
   * waiting does not help, and a Problem if the database does not respond. The next call of a method retries.
   */
  async open(): Promise<void> {
    await this.#open().done;
  }

  /** The same, but throws a Problem after 2 seconds. A migration continues in the background. */
  async openWithTimeout(): Promise<void> {
    const opening = this.#open();
    const leftMs = opening.sinceMs + openTimeoutMs - performance.now();
    await withTimeout(opening.done, () => {}, Math.max(0, leftMs)).catch((error: unknown) => {
      const { isMigrating } = opening;
      if (error instanceof TimeoutError)
        throw storageUnavailable(isMigrating ? new MigrationInProgress() : error);
      throw isMigrating && isStatementError(error) ? storageUnavailable(error) : error;
    });
  }

  #open(): Opening {
    const nowMs = performance.now();
    if (this.#opening !== undefined && nowMs < this.#opening.untilMs) return this.#opening;
    const opening: Opening = {
      done: Promise.resolve(),
      sinceMs: nowMs,
      isMigrating: false,
      untilMs: Infinity,
    };
    const onMigrate = () => void (opening.isMigrating = true);
    opening.done = this.#migrateAndCheck(onMigrate).catch((error: unknown) => {
      const isMigrationFailure = opening.isMigrating && !isConnectionLost(error);
      opening.untilMs = isMigrationFailure ? performance.now() + migrationRetryMs : 0;
      throw error instanceof Refusal ? error : (refusalFor(error) ?? problemOf(error));
    });
    this.#opening = opening;
    return opening;
  }

  async #migrateAndCheck(onMigrate: () => void): Promise<void> {
    const startedMs = performance.now();
    await migrate(this.#pool, { ...this.#options, onMigrate, stop: this.#stop.signal });
    await this.#pool.withConnection((connection) => checkDatabase(connection, this.#options));
    this.#schemaUntilMs = startedMs + schemaCacheMs; // already past if a migration took long
  }

  /** Limits the time of all statements of a read together, including queries that others have started. */
  async read<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await withTimeout(this.whenReady().then(read));
    } catch (error) {
      throw error instanceof Refusal ? storageUnavailable(error) : problemOf(error);
    }
  }

  async whenReady(): Promise<void> {
    if (performance.now() < this.#schemaUntilMs) return;
    this.#schemaCheck ??= this.#checkSchema().finally(() => (this.#schemaCheck = undefined));
    try {
      await this.#schemaCheck;
    } catch (error) {
      throw error instanceof Refusal ? storageUnavailable(error) : problemOf(error);
    }
  }

  /** Throws a Problem if the database does not answer, or must not be used any more. */
  async check(): Promise<void> {
    await this.read(async () => {
      const [copies, [server = []]] = await this.#pool.check((connection) =>
        settled([connection.query(unfinishedSql, []), connection.query(serverInfoSql, [])]),
      );
      if (copies.length > 0) throw unfinishedCopy();
      refuseUnsafe(server); // the settings can have changed
    });
  }

  /** Stops a migration that is in progress. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#opening?.done.catch(() => {});
  }

  /** A newer program announces a migration that this one must not use, and waits until every process has checked. */
  async #checkSchema(): Promise<void> {
    await this.openWithTimeout();
    if (performance.now() < this.#schemaUntilMs) return;
    const startedMs = performance.now();
    const read = this.#pool.check((connection) => connection.query(schemaSql, []));
    const [[number] = [0]] = await withTimeout(read, () => {}, schemaCheckTimeoutMs);
    const schema = decodeSchema(number);
    refuseUnusableSchema(schema);
    if (schema.version < newestVersion) {
      this.#opening = undefined; // an older backup was restored: the next request migrates it
      throw new MigrationInProgress();
    }
    this.#schemaUntilMs = startedMs + schemaCacheMs;
  }
}

async function checkDatabase(connection: Connection, options: ReadinessOptions): Promise<void> {
  if (options.distribute === true) await distribute(connection);
  await refuseUnsafeWorkers(connection);
  const copies = await connection.query(unfinishedSql, []);
  if (copies.length > 0) throw unfinishedCopy();
}
