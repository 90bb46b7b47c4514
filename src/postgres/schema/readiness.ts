/**
 * Whether the database can be used: creates or migrates its schema first, and later notices that a newer program
 * is going to change it.
 */
import { storageUnavailable } from '../../problem.ts';
import { Refusal } from '../../refusal.ts';
import {
  isConnectionLost,
  problemOf,
  refusalFor,
  settled,
  TimeoutError,
  Unavailable,
} from '../errors.ts';
import {
  migrate,
  migrations,
  refuseUnusableSchema,
  schemaCacheMs,
  type MigrateOptions,
} from './migrate.ts';
import type { Pool } from '../pool/pool.ts';
import { waitTimeoutMs, withTimeout } from '../pool/timeout.ts';
import type { Servers } from '../servers.ts';

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
  readonly #servers: Servers;
  readonly #options: ReadinessOptions;
  readonly #stop = new AbortController();
  #opening: Opening | undefined;
  /** Stale for 1 s: nobody notices, because a newer program waits longer before it changes the schema. */
  readonly #checks = new WeakMap<Pool, ServerCheck>();

  constructor(servers: Servers, options: ReadinessOptions) {
    this.#servers = servers;
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
      if (!(error instanceof TimeoutError)) throw error;
      throw storageUnavailable(opening.isMigrating ? migrationInProgress() : error);
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
      const hasFailed = opening.isMigrating && !isConnectionLost(error);
      opening.untilMs = hasFailed ? performance.now() + migrationRetryMs : 0;
      if (error instanceof Refusal) throw error;
      throw refusalFor(error) ?? (hasFailed ? storageUnavailable(error) : problemOf(error));
    });
    this.#opening = opening;
    return opening;
  }

  async #migrateAndCheck(onMigrate: () => void): Promise<void> {
    const { create, distribute = false } = this.#options;
    await migrate(this.#servers, { create, onMigrate, stop: this.#stop.signal });
    if (!distribute) return this.#check(this.#servers.any);
    await this.#servers.distribute();
    // All nodes, unlike the start of a service, which does not need every node.
    await settled(this.#servers.withStores.map((server) => this.#check(server)));
  }

  /** Resolves when the server can be used: its schema, and its settings. Throws a Problem if it does not respond. */
  async whenReady(server: Pool): Promise<void> {
    const check = this.#checks.get(server) ?? { untilMs: 0 };
    try {
      server.breaker.assertAvailable();
      if (performance.now() < check.untilMs) return;
      this.#checks.set(server, check);
      check.inFlight ??= this.#renew(check, server).finally(() => (check.inFlight = undefined));
      await check.inFlight;
    } catch (error) {
      throw problemOf(error);
    }
  }

  async #renew(check: ServerCheck, server: Pool): Promise<void> {
    await this.openWithTimeout();
    const startedMs = performance.now();
    await withTimeout(this.#check(server), schemaCacheMs); // no longer than its result is valid
    check.untilMs = startedMs + schemaCacheMs;
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
    const checks = this.#servers.withStores.map((server) => this.#check(server));
    await Promise.any(checks).catch((error: AggregateError) => {
      throw error.errors[0];
    });
  }

  /** A newer program announces a migration that this one must not use, and waits until every process has checked. */
  async #check(server: Pool): Promise<void> {
    const schema = await this.#servers.check(server);
    refuseUnusableSchema(schema);
    if (schema.version < migrations.newest) {
      this.#opening = undefined; // an older backup was restored: the next request migrates it
      throw migrationInProgress();
    }
  }

  /** Stops a migration that is in progress. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#opening?.done.catch(() => {});
  }
}

function migrationInProgress(): Unavailable {
  return new Unavailable('the database is being upgraded to a newer schema');
}
