/**
 * Whether the database can be used: creates or migrates its schema first, and later notices that a newer program
 * has changed it.
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
import { migrate, migrations, refuseUnusableSchema, type MigrateOptions } from './migrate.ts';
import type { Pool } from '../pool/pool.ts';
import { checkMs, waitTimeoutMs, withTimeout } from '../pool/timeout.ts';
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
  state: 'in progress' | 'migrating' | 'done';
  /** When a failure expires. */
  untilMs: number;
}

export class Readiness {
  readonly #servers: Servers;
  readonly #options: ReadinessOptions;
  readonly #stop = new AbortController();
  #opening: Opening | undefined;

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
      throw storageUnavailable(opening.state === 'migrating' ? migrationInProgress() : error);
    });
  }

  #open(): Opening {
    const nowMs = performance.now();
    if (this.#opening !== undefined && nowMs < this.#opening.untilMs) return this.#opening;
    const opening: Opening = {
      done: Promise.resolve(),
      sinceMs: nowMs,
      state: 'in progress',
      untilMs: Infinity,
    };
    const onMigrate = () => void (opening.state = 'migrating');
    opening.done = this.#migrateAndCheck(onMigrate).then(
      () => void (opening.state = 'done'),
      (error: unknown) => {
        const hasFailed = opening.state === 'migrating' && !isConnectionLost(error);
        opening.untilMs = hasFailed ? performance.now() + migrationRetryMs : 0;
        if (error instanceof Refusal) throw error;
        throw refusalFor(error) ?? (hasFailed ? storageUnavailable(error) : problemOf(error));
      },
    );
    this.#opening = opening;
    return opening;
  }

  async #migrateAndCheck(onMigrate: () => void): Promise<void> {
    const { create, distribute = false } = this.#options;
    await migrate(this.#servers, { create, onMigrate, stop: this.#stop.signal });
    if (distribute) await this.#servers.distribute();
    // All nodes after they have got their rows. A service does not need every node to start.
    const { withStores, any } = this.#servers;
    await settled((distribute ? withStores : [any]).map((server) => this.#check(server)));
  }

  /** Resolves when the server can be used: its schema, and its settings. Throws a Problem if it does not respond. */
  async whenReady(server: Pool): Promise<void> {
    try {
      if (this.#opening?.state !== 'done') await this.openWithTimeout();
      await this.#check(server, checkMs);
    } catch (error) {
      throw problemOf(error);
    }
  }

  /** Throws a Problem if no server with stores answers, or if the database must not be used any more. */
  async check(): Promise<void> {
    try {
      await this.openWithTimeout();
      await Promise.any(this.#servers.withStores.map((server) => this.#check(server)));
    } catch (error) {
      throw problemOf(error instanceof AggregateError ? error.errors[0] : error);
    }
  }

  /** A newer program can have changed the schema, which every process notices within `checkMs`. */
  async #check(server: Pool, maxAgeMs?: number): Promise<void> {
    const schema = await server.health.check(maxAgeMs);
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
