/**
 * Migrates a database to the newest schema, with the numbered files of migrations/: each statement is its own
 * transaction and can be repeated. Of several replicas that start concurrently, the one whose session has the lock
 * migrates (migration-session.ts). Replicas of older versions continue to serve, unless a migration refuses them
 * (migrations.ts).
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  readMigrations,
  encodeSchema,
  refuseNewer,
  refuseUnusable,
  schemaAfter,
  decodeSchema,
  type Schema,
} from '../../shared/migrations.ts';
import { Refusal } from '../../refusal.ts';
import { distribute, isCitus, runUnlimited } from '../citus/citus.ts';
import { sql, type Connection } from '../pool/connection.ts';
import { codeOf, isStatementError, isConnectionLost, isRetryable, sqlState } from '../errors.ts';
import type { Cluster } from '../citus/cluster.ts';
import { withRetries } from '../pool/retries.ts';
import { withMigrationLock } from './migration-session.ts';
import { parseSteps, type MigrationStep } from './migration-steps.ts';

/** A statement that waits for a lock blocks all later ones, so waits and pauses of this length alternate. */
const turnMs = 1_000;
/** How long a program caches the schema number. */
export const schemaCacheMs = 1_000;
/** After this time, no older program uses a schema that refuses it: a request takes at most 12 seconds. */
const olderDrainMs = schemaCacheMs + 12_000;
/** How often a migration continues after a transient failure: a lost connection can be one between nodes of Citus. */
const maxFailures = 3;

const migrations = readMigrations(new URL('../migrations/', import.meta.url)).map((migration) => ({
  ...migration,
  statements: parseSteps(migration.sql),
}));

/** The schema version that this program supports. */
export const newestVersion = migrations.length;

const createTableSteps = [
  `CREATE TABLE IF NOT EXISTS plant_store.migrations (
     id      integer NOT NULL PRIMARY KEY CHECK (id = 1),
     -- The number of the schema (migrations.ts).
     version integer NOT NULL,
     -- Identifies a cluster: from another machine, the name of a node can lead to a node of another cluster.
     cluster text    NOT NULL,
     -- The source of a copy that is incomplete.
     copy_of text
   )`,
  `INSERT INTO plant_store.migrations (id, version, cluster)
   VALUES (1, 0, gen_random_uuid()::text) ON CONFLICT DO NOTHING`,
];

const schemaSql = {
  number: sql<readonly [number: number]>`SELECT version FROM plant_store.migrations WHERE id = 1`,
  setNumber: sql`UPDATE plant_store.migrations SET version = $1 WHERE id = 1`,
};

const namespaceSql = sql`SELECT 1 FROM pg_namespace WHERE nspname = 'plant_store'`;

const invalidIndexSql = sql`
  SELECT 1 FROM pg_index
  JOIN pg_class ON pg_class.oid = indexrelid
  JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE nspname = 'plant_store' AND relname = $1 AND NOT indisvalid`;

export interface MigrateOptions {
  /** Whether to create a schema if there is none. */
  create: boolean;
  /** Called if the schema is older than the newest. */
  onMigrate?: () => void;
  /** Ends the migration in progress. Another process can then take over immediately. */
  stop?: AbortSignal;
}

/**
 * Resolves once the schema is the newest, or a newer one that can be used, whichever process migrated it. Throws
 * Refusal if the schema cannot be used, or if there is none and `create` is false.
 */
export async function migrate(
  cluster: Cluster,
  { create, onMigrate = () => {}, stop = new AbortController().signal }: MigrateOptions,
): Promise<void> {
  for (let failures = 0; ;) {
    const schema = await withRetries(() => cluster.any.withConnection(readSchema));
    if (schema === undefined && !create) {
      throw new Refusal('There is no Plant Store in this database.', { kind: 'missing-schema' });
    }
    if (schema !== undefined) {
      refuseUnusableSchema(schema);
      if (schema.version >= newestVersion) return;
    }
    onMigrate();
    const coordinator = await cluster.reachCoordinator();
    try {
      const work = (session: Connection) => runMigrations(session, stop);
      if (await withMigrationLock(coordinator, work)) continue;
    } catch (error) {
      const isTransient = isConnectionLost(error) || isRetryable(error);
      if (stop.aborted || !isTransient || ++failures > maxFailures) throw error;
    }
    await pause(turnMs, undefined, { signal: stop }); // another process has the lock, or the server restarts
  }
}

/** Throws Refusal for a newer schema that this program must not use. */
export function refuseUnusableSchema(schema: Schema): void {
  refuseUnusable(schema, newestVersion, 'The database');
}

/** Throws Refusal for a newer schema, which can have columns that this program does not copy. */
export async function refuseNewerSchema(connection: Connection): Promise<void> {
  const schema = await readSchema(connection);
  if (schema !== undefined) refuseNewer(schema, newestVersion, 'The database');
}

/** The session must have the lock. If nothing has changed after a failure or a stop, older programs still serve. */
async function runMigrations(session: Connection, stop: AbortSignal): Promise<void> {
  /** The number to restore after a failure; undefined once something may have changed. */
  let previousNumber: number | undefined;
  const onStop = () => {
    if (previousNumber === undefined) session.destroy(); // ends the statement in progress
  };
  stop.addEventListener('abort', onStop);
  try {
    stop.throwIfAborted();
    let schema = (await readSchema(session)) ?? (await createMigrationsTable(session));
    const isNew = schema.version === 0;
    for (const migration of migrations.slice(schema.version)) {
      const next = schemaAfter(schema, migration);
      if (migration.refusesOlder && !isNew) {
        // If the migration was already announced, another process may have changed something.
        if (schema.usableFrom <= schema.version) previousNumber = encodeSchema(schema);
        await setSchema(session, { version: schema.version, usableFrom: next.usableFrom });
        await pause(olderDrainMs, undefined, { signal: stop });
      }
      for (const step of migration.statements) {
        const unchanged = previousNumber;
        previousNumber = undefined;
        await runStep(step, session, stop).catch((error: unknown) => {
          // The server rolled the whole statement back.
          if (isStatementError(error) && !step.repeats) previousNumber = unchanged;
          throw error;
        });
      }
      await distribute(session);
      await setSchema(session, next);
      schema = next;
    }
  } catch (error) {
    if (previousNumber !== undefined && !session.isLost) {
      await setSchema(session, decodeSchema(previousNumber)).catch(() => {}); // the first error is more useful
    }
    throw error;
  } finally {
    stop.removeEventListener('abort', onStop);
  }
}

async function runStep(step: MigrationStep, session: Connection, stop: AbortSignal): Promise<void> {
  for (;;) {
    try {
      if (step.index !== undefined) await dropInvalid(step.index, session);
      const rows = await execute(step, session);
      if (!step.repeats || rows === 0) return;
    } catch (error) {
      if (codeOf(error) !== sqlState.lockNotAvailable && !isRetryable(error)) throw error;
      await pause(turnMs, undefined, { signal: stop });
    }
  }
}

/** Runs a statement without a time limit, except for locks that block others. Returns the number of rows it changed. */
async function execute(
  { text, isConcurrent }: Pick<MigrationStep, 'text' | 'isConcurrent'>,
  session: Connection,
): Promise<number> {
  if (await isCitus(session)) {
    // Limits of a worker can only be changed in a transaction, which excludes CONCURRENTLY.
    const inTransaction = isConcurrent ? text.replace(/\bCONCURRENTLY\s/i, '') : text;
    return (await runUnlimited(session, inTransaction, turnMs)).rowCount ?? 0;
  }
  // CONCURRENTLY can wait for a long time, but does not block other transactions.
  await session.command(`SET lock_timeout = ${isConcurrent ? 0 : turnMs}`);
  return (await session.commandWithoutDeadline(text)).rowCount ?? 0;
}

/** After an aborted CREATE INDEX CONCURRENTLY, an invalid index with this name remains. */
async function dropInvalid(index: string, session: Connection): Promise<void> {
  if ((await session.query(invalidIndexSql, [index])).length === 0) return;
  const text = `DROP INDEX CONCURRENTLY IF EXISTS plant_store.${index}`;
  await execute({ text, isConcurrent: true }, session);
}

async function setSchema(session: Connection, schema: Schema): Promise<void> {
  await session.query(schemaSql.setNumber, [encodeSchema(schema)]);
}

/** Undefined if there is no schema. */
async function readSchema(connection: Connection): Promise<Schema | undefined> {
  try {
    const [row] = await connection.query(schemaSql.number, []);
    return row && decodeSchema(row[0]);
  } catch (error) {
    const code = codeOf(error);
    if (code === sqlState.undefinedTable || code === sqlState.invalidSchema) return undefined;
    throw error;
  }
}

/** Creates the row that stores the schema number. */
async function createMigrationsTable(session: Connection): Promise<Schema> {
  // If an administrator has created the schema, the user does not need the privilege to create one.
  const schemaExists = (await session.query(namespaceSql, [])).length > 0;
  if (!schemaExists) await session.command('CREATE SCHEMA plant_store');
  for (const statement of createTableSteps) await session.command(statement);
  return { version: 0, usableFrom: 0 };
}
