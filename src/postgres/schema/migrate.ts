/**
 * Migrates a database to the newest schema, with the numbered files of migrations/. Each is one transaction under one
 * lock, so of several replicas that start concurrently, one migrates. A new database gets all of them in one transaction.
 * Replicas of older versions continue to serve, unless a migration refuses them (migrations.ts).
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  readMigrations,
  encodeSchema,
  refuseNewer,
  refuseUnusable,
  schemaAfter,
  decodeSchema,
  type Migration,
  type Schema,
} from '../../shared/migrations.ts';
import { Refusal } from '../../refusal.ts';
import { unlimitedSettings } from '../citus/citus.ts';
import { runStatements, withClusterLock } from '../citus/migrate.ts';
import { sql, type Connection } from '../pool/connection.ts';
import { codeOf, isConnectionLost, isRetryable, sqlState } from '../errors.ts';
import type { Cluster } from '../citus/cluster.ts';
import { withRetries } from '../pool/retries.ts';

/** A statement that waits for a lock blocks all later ones, so waits and pauses of this length alternate. */
const turnMs = 1_000;
/** How long a program caches the schema number. */
export const schemaCacheMs = 1_000;
/** After this time, no older program uses a schema that refuses it: a request takes at most 12 seconds. */
const olderDrainMs = schemaCacheMs + 12_000;
/** How often a migration is tried again after a transient failure. */
const maxFailures = 3;
/** The server ends the transaction of a process that is paused for so long. */
const maxIdleMs = 4_000;
/** "Plnt": other programs that use the database should not have the same number. */
const lockNumber = 0x506c6e74;

const migrations = readMigrations(new URL('../migrations/', import.meta.url));

const none = decodeSchema(0);

/** The schema version that this program supports. */
export const newestVersion = migrations.length;

const createTableSteps = [
  `CREATE TABLE IF NOT EXISTS plant_store.migrations (
     id      integer NOT NULL PRIMARY KEY CHECK (id = 1),
     -- The number of the schema (migrations.ts).
     version integer NOT NULL,
     -- Identifies a cluster: from another machine, the name of a node can lead to a node of another cluster.
     cluster text    NOT NULL
   )`,
  `INSERT INTO plant_store.migrations (id, version, cluster)
   VALUES (1, 0, gen_random_uuid()::text) ON CONFLICT DO NOTHING`,
];

const schemaSql = {
  number: sql<readonly [number: number]>`SELECT version FROM plant_store.migrations WHERE id = 1`,
  /** Locks the row, even if both numbers are the same. Returns no row if another process has changed it. */
  replace: sql`
    UPDATE plant_store.migrations SET version = $2 WHERE id = 1 AND version = $1 RETURNING version`,
};

const namespaceSql = sql`SELECT 1 FROM pg_namespace WHERE nspname = 'plant_store'`;

/** The sessions of a process have a name of their own (connection.ts). */
const otherProcessesSql = sql`
  SELECT 1 FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE 'plant-store %'
    AND application_name <> current_setting('application_name') LIMIT 1`;

export interface MigrateOptions {
  /** Whether to create a schema if there is none. */
  create: boolean;
  /** Called if the schema is older than the newest. */
  onMigrate?: () => void;
  /** Ends the migration in progress. */
  stop?: AbortSignal;
}

/** The next migration of a schema, or all of them if there is none: no older program can use it meanwhile. */
interface Step {
  migrations: readonly Migration[];
  from: Schema;
  /** `from`, but already refusing the programs that `to` refuses. */
  announced: Schema;
  to: Schema;
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
    if (schema !== undefined) refuseUnusableSchema(schema);
    const step = stepFrom(schema ?? none);
    if (step === undefined) return;
    onMigrate();
    try {
      await run(step, cluster, stop);
    } catch (error) {
      const isLocked = codeOf(error) === sqlState.lockNotAvailable;
      const isTransient = isLocked || isConnectionLost(error) || isRetryable(error);
      if (stop.aborted || !isTransient || (!isLocked && ++failures > maxFailures)) {
        await withdraw(step, cluster).catch(() => {}); // the first error is more useful
        throw error;
      }
      await pause(turnMs, undefined, { signal: stop }).catch(() => {});
    }
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

/** Undefined if the schema is the newest. */
function stepFrom(from: Schema): Step | undefined {
  const next = from.version === 0 ? migrations : migrations.slice(from.version, from.version + 1);
  if (next.length === 0) return undefined;
  const to = next.reduce(schemaAfter, from);
  return { migrations: next, from, announced: { ...to, version: from.version }, to };
}

async function run(step: Step, cluster: Cluster, stop: AbortSignal): Promise<void> {
  const server = await cluster.reachCoordinator();
  const { from, announced } = step;
  if (from.version > 0 && step.migrations.some(({ refusesOlder }) => refusesOlder)) {
    await server.withConnection((session) => replace(session, from, announced));
    const others = await server.withConnection((session) => session.query(otherProcessesSql, []));
    // The processes of a cluster can have sessions on other nodes only.
    const isShared = cluster.isCitus || others.length > 0;
    if (isShared) await pause(olderDrainMs, undefined, { signal: stop });
  }
  await server.withConnection(async (session) => {
    const onStop = () => session.destroy(); // the server rolls back
    stop.addEventListener('abort', onStop);
    try {
      stop.throwIfAborted();
      if (cluster.isCitus) await applyToCluster(step, session);
      else await applyInTransaction(step, session);
    } finally {
      stop.removeEventListener('abort', onStop);
    }
  });
}

/** After a failure, older programs can continue, because a transaction has changed nothing. */
async function withdraw({ from, announced }: Step, cluster: Cluster): Promise<void> {
  if (cluster.isCitus || from.version === 0) return;
  const before = migrations.slice(0, from.version).reduce(schemaAfter, none);
  await cluster.any.withConnection((session) => replace(session, announced, before));
}

async function applyInTransaction(step: Step, session: Connection): Promise<void> {
  const settings = [
    await unlimitedSettings(session, turnMs),
    `SET LOCAL idle_in_transaction_session_timeout = ${maxIdleMs}`,
  ];
  await session.command(`BEGIN ISOLATION LEVEL READ COMMITTED; ${settings.join(';')}`);
  try {
    await session.command(`SELECT pg_advisory_xact_lock(${lockNumber})`);
    await apply(step, session, (text) => session.commandWithoutDeadline(text));
    await session.commandWithoutDeadline('COMMIT');
  } catch (error) {
    if (!session.isLost) await session.command('ROLLBACK');
    throw error;
  }
}

function applyToCluster(step: Step, session: Connection): Promise<void> {
  return withClusterLock(session, lockNumber, () =>
    apply(step, session, (text) => runStatements(session, text, turnMs)),
  );
}

/** Does nothing if another process has changed the schema. */
async function apply(
  { migrations: next, from, announced, to }: Step,
  session: Connection,
  execute: (text: string) => Promise<unknown>,
): Promise<void> {
  if (from.version === 0) await createMigrationsTable(session);
  const before = from.version === 0 ? from : announced;
  if (!(await replace(session, before, before))) return;
  for (const { sql: text } of next) await execute(text);
  await replace(session, before, to);
}

/** Whether the number was that of `from`. */
async function replace(session: Connection, from: Schema, to: Schema): Promise<boolean> {
  const numbers = [from, to].map(encodeSchema);
  return (await session.query(schemaSql.replace, numbers)).length > 0;
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

/** Creates the row that stores the schema number, if it is missing. */
async function createMigrationsTable(session: Connection): Promise<void> {
  // If an administrator has created the schema, the user does not need the privilege to create one.
  const schemaExists = (await session.query(namespaceSql, [])).length > 0;
  if (!schemaExists) await session.command('CREATE SCHEMA plant_store');
  for (const statement of createTableSteps) await session.command(statement);
}
