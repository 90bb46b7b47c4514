/**
 * Whether the database can be used: creates or migrates its schema first, and later notices that a newer program
 * is going to change it.
 */
import { storageUnavailable } from '../../problem.ts';
import { Refusal } from '../../refusal.ts';
import { distribute } from '../citus/citus.ts';
import type { Cluster } from '../citus/cluster.ts';
import {
  isConnectionLost,
  isStatementError,
  problemOf,
  refusalFor,
  TimeoutError,
  Unavailable,
  settled,
} from '../errors.ts';
import {
  migrate,
  newestVersion,
  refuseUnusableSchema,
  schemaCacheMs,
  type MigrateOptions,
} from './migrate.ts';
import type { Pool } from '../pool/pool.ts';
import { waitTimeoutMs, withTimeout } from '../pool/timeout.ts';

export interface ReadinessOptions extends Pick<MigrateOptions, 'create'> {
  /** Whether to distribute existing tables over the nodes of a cluster, however long it takes. */
  distribute?: boolean;
}

/** A failed migration is retried after this time, because each attempt can lock tables or fill the disk. */
const migrationRetryMs = 60_000;

interface Opening {
  done: Promise<void>;
  sinceMs: number;
  isMigrating: boolean;
  /** When its result expires, even if it is a failure. */
  untilMs: number;
}

/** The last check of a server. */
interface ServerCheck {
  inFlight?: Promise<void> | undefined;
  /** When the next one is due. */
  untilMs: number;
}

export class Readiness {
  readonly #cluster: Cluster;
  readonly #options: ReadinessOptions;
  readonly #stop = new AbortController();
  #opening: Opening | undefined;
  /** Stale for 1 s: nobody notices, because a newer program waits longer before it changes the schema. */
  readonly #checks = new WeakMap<Pool, ServerCheck>();

  constructor(cluster: Cluster, options: ReadinessOptions) {
    this.#cluster = cluster;
    this.#options = options;
  }

  /**
   * Resolves when the database has a schema that can be used, however long a migration takes. Throws Refusal if
   * waiting does not help, and a Problem if the database does not respond. The next call of a method retries.
   */
  async open(): Promise<void> {
    await this.#open().done;
  }

  /** Like `open`, but throws a Problem after 2 seconds. A migration continues in the background. */
  async openWithTimeout(): Promise<void> {
    const opening = this.#open();
    const leftMs = opening.sinceMs + waitTimeoutMs - performance.now();
    await withTimeout(opening.done, Math.max(0, leftMs)).catch((error: unknown) => {
      const { isMigrating } = opening;
      if (error instanceof TimeoutError)
        throw storageUnavailable(isMigrating ? migrationInProgress() : error);
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
    const options = { ...this.#options, onMigrate, stop: this.#stop.signal };
    await migrateCluster(this.#cluster, options);
    if (options.distribute === true) await this.#distribute();
    await this.#checkServer(this.#cluster.any);
  }

  /** Also checks all nodes, unlike the start of a service, which does not need every node. */
  async #distribute(): Promise<void> {
    const coordinator = await this.#cluster.reachCoordinator();
    await coordinator.withConnection(distribute);
    await this.#cluster.locate();
    await settled(this.#cluster.withStores.map((server) => this.#cluster.check(server)));
  }

  /** Resolves when the server can be used: its schema, and its settings. Throws a Problem if it does not respond. */
  async whenReady(server: Pool): Promise<void> {
    const check = this.#checks.get(server) ?? { untilMs: 0 };
    try {
      server.breaker.assertAvailable();
      if (performance.now() < check.untilMs) return;
      this.#checks.set(server, check);
      check.inFlight ??= this.#check(server, check).finally(() => (check.inFlight = undefined));
      await check.inFlight;
    } catch (error) {
      throw problemOf(error);
    }
  }

  /** Throws a Problem if no server with stores answers, or if the database must not be used any more. */
  async check(): Promise<void> {
    try {
      await withTimeout(this.#checkAny());
    } catch (error) {
      throw problemOf(error);
    }
  }

  async #checkAny(): Promise<void> {
    await this.openWithTimeout();
    const checks = this.#cluster.withStores.map((server) => this.#checkServer(server));
    await Promise.any(checks).catch((error: AggregateError) => {
      throw error.errors[0];
    });
  }

  /** Stops a migration that is in progress. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#opening?.done.catch(() => {});
  }

  async #check(server: Pool, check: ServerCheck): Promise<void> {
    await this.openWithTimeout();
    const startedMs = performance.now();
    await withTimeout(this.#checkServer(server), schemaCacheMs); // no longer than its result is valid
    check.untilMs = startedMs + schemaCacheMs;
  }

  /** A newer program announces a migration that this one must not use, and waits until every process has checked. */
  async #checkServer(server: Pool): Promise<void> {
    const schema = await this.#cluster.check(server);
    refuseUnusableSchema(schema);
    if (schema.version < newestVersion) {
      this.#opening = undefined; // an older backup was restored: the next request migrates it
      throw migrationInProgress();
    }
  }
}

function migrationInProgress(): Unavailable {
  return new Unavailable('the database is being upgraded to a newer schema');
}

/** Migrates the schema if needed, and finds the server of each store. */
export async function migrateCluster(cluster: Cluster, options: MigrateOptions): Promise<void> {
  const isCitus = await cluster.locate();
  await migrate(cluster, options);
  if (isCitus && !cluster.isLocated) await cluster.locate(); // the tables are new
}
