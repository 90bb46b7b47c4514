/**
 * Migrates a database to the newest schema, with the numbered files of migrations/: all in one transaction, under a lock
 * of the session, so of several replicas that start concurrently, one migrates. Replicas of older versions continue to
 * serve, unless a migration refuses them (migrations.ts).
 */
import { addAbortListener } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { decodeSchema, encodeSchema, Migrations, type Schema } from '../../shared/migrations.ts';
import { NoDatabase } from '../../refusal.ts';
import { endWorkerSessions, runStatements } from '../citus/citus.ts';
import { sql } from '../../sql/statement.ts';
import type { Connection } from '../pool/connection.ts';
import { codeOf, isRetryable, sqlState } from '../errors.ts';
import type { Pool } from '../pool/pool.ts';
import { withRetries } from '../pool/retries.ts';
import type { Servers } from '../servers.ts';
import { checkNodeSql, checkServer } from './check.ts';
import { runUnlimited } from './unlimited.ts';

/** A statement that waits for a lock blocks all later ones, so waits and pauses of this length alternate. */
const turnMs = 1_000;
/** "Plnt": other programs that use the database should not have the same number. */
const lockNumber = 0x506c6e74;

export const migrations = new Migrations(new URL('../migrations/', import.meta.url));

/** The database, in messages. */
const databaseName = 'The database';

const lockSql = sql`SELECT pg_advisory_lock(${lockNumber})`;
const namespaceSql = sql`SELECT 1 FROM pg_namespace WHERE nspname = 'plant_store'`;

export interface MigrateOptions {
  /** Whether to create a schema if there is none. */
  create: boolean;
  /** Called if the schema is older than the newest. */
  onMigrate?: () => void;
  /** Ends the session of the migration in progress: the server rolls it back, or completes it. */
  stop?: AbortSignal;
}

/**
 * Resolves once the schema is the newest, or a newer one that can be used, whichever process migrated it, and the server
 * of each store is known. Throws Refusal if the schema cannot be used, or if there is none and `create` is false.
 */
export async function migrate(
  servers: Servers,
  { create, onMigrate = () => {}, stop = new AbortController().signal }: MigrateOptions,
): Promise<void> {
  for (;;) {
    const isCitus = await servers.locate(); // again after a migration, which creates tables
    const schema = await withRetries(() => servers.any.withConnection(readSchema));
    if (schema.version === 0 && !create) {
      throw new NoDatabase(
        'There is no Plant Store in this database. Create its tables with "npx plant-store migrate".',
      );
    }
    refuseUnusableSchema(schema);
    if (schema.version >= migrations.newest) return;
    onMigrate();
    try {
      await migrateOn(await servers.forSchema(), isCitus, stop);
    } catch (error) {
      const isConflict = codeOf(error) === sqlState.lockNotAvailable || isRetryable(error);
      if (stop.aborted || !isConflict) throw error;
      await pause(turnMs, undefined, { signal: stop }).catch(() => {});
    }
  }
}

/** Throws Refusal for a newer schema that this program must not use. */
export function refuseUnusableSchema(schema: Schema): void {
  migrations.refuseUnusable(schema, databaseName);
}

/** Throws Refusal for a newer schema, which can have columns that this program does not copy. */
export async function refuseNewerSchema(connection: Connection): Promise<void> {
  migrations.refuseNewer(await readSchema(connection), databaseName);
}

export async function refuseOlderSchema(connection: Connection): Promise<void> {
  migrations.refuseOlder(await readSchema(connection), databaseName);
}

async function migrateOn(server: Pool, isCitus: boolean, stop: AbortSignal): Promise<void> {
  await server.withConnection(async (session) => {
    using _ = addAbortListener(stop, () => session.destroy());
    try {
      stop.throwIfAborted();
      if (isCitus) await session.command(endWorkerSessions);
      await session.query(lockSql, []);
      await migrateLocked(session, isCitus);
    } finally {
      session.destroy(); // releases the lock
    }
  });
}

/** Does nothing if another process, perhaps of a newer version, has migrated the schema. */
async function migrateLocked(session: Connection, isCitus: boolean): Promise<void> {
  const { version } = await readSchema(session);
  const { newest } = migrations;
  if (version >= newest) return;
  // If an administrator has created the namespace, the user does not need the privilege to create one.
  const isNamespaceMissing = (await session.query(namespaceSql, [])).length === 0;
  const statements =
    (isNamespaceMissing ? 'CREATE SCHEMA plant_store;' : '') +
    migrations.sqlBetween(version, newest);
  if (isCitus) await runStatements(session, statements, turnMs);
  const number = encodeSchema(migrations.schemaOf(newest));
  const update = `UPDATE plant_store.migrations SET version = ${number} WHERE id = 1`;
  await runUnlimited(session, (isCitus ? '' : statements) + update, turnMs);
}

/** Its version is 0 if there is none. */
export async function readSchema(connection: Connection): Promise<Schema> {
  return checkServer(connection, checkNodeSql).catch((error: unknown) => {
    const code = codeOf(error);
    if (code === sqlState.undefinedTable || code === sqlState.invalidSchema) return decodeSchema(0);
    throw error;
  });
}
