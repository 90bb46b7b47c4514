/**
 * Brings a database to the newest schema: the numbered files of migrations/, each statement a
 * transaction of its own that may be repeated. Ten replicas that start at once do it once, however long
 * it takes (lease.ts), and replicas of older versions serve meanwhile.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import {
  readMigrations,
  encodeSchema,
  refuseNewer,
  refuseUnusable,
  schemaAfter,
  decodeSchema,
  type Schema,
} from '../migrations.ts';
import { Refusal } from '../refusal.ts';
import { distribute } from './citus.ts';
import { prepared, type Connection, type Statement } from './connection.ts';
import { codeOf, isStatementError, isConnectionLost, isRetryable, sqlState } from './errors.ts';
import { Lease, LeaseLost } from './lease.ts';
import type { Pool } from './pool.ts';
import { parseSteps, type MigrationStep } from './migration-steps.ts';

const pollMs = 100;
/** What waits for a lock makes all others wait that come after it: not for long, and not all the time. */
const lockMsMax = 1_000;
const lockPauseMs = 1_000;
/** How long a program relies on what it has read of the schema. */
export const schemaCacheMs = 1_000;
/** After so long no older program uses a schema that refuses it: a request takes 12 seconds at most. */
const olderMsMax = schemaCacheMs + 12_000;
/** How long a server can be lost to a process that waits for a migration or makes it. */
const lostMsMax = 60_000;

const migrations = readMigrations(new URL('./migrations/', import.meta.url)).map((migration) => ({
  ...migration,
  statements: parseSteps(migration.sql),
}));

/** The schema that this program knows. */
export const newestVersion = migrations.length;

/** Made before anything else, and by whoever comes first. */
const ledger = [
  'CREATE SCHEMA IF NOT EXISTS plant_store',
  `CREATE TABLE IF NOT EXISTS plant_store.migrations (
     id      integer NOT NULL PRIMARY KEY CHECK (id = 1),
     -- The number of the schema (migrations.ts).
     version integer NOT NULL,
     holder  text    NOT NULL,
     held_until timestamptz NOT NULL,
     -- What is being copied to here and not yet whole.
     copy_of text
   )`,
  `INSERT INTO plant_store.migrations (id, version, holder, held_until)
   VALUES (1, 0, '', '-infinity') ON CONFLICT DO NOTHING`,
];

export const schemaSql = prepared<readonly [number: number]>(
  'schema_number',
  'SELECT version FROM plant_store.migrations WHERE id = 1',
);

const namespaceSql: Statement = {
  name: 'schema_is_there',
  text: "SELECT 1 FROM pg_namespace WHERE nspname = 'plant_store'",
};

const invalidIndexSql: Statement = {
  name: 'invalid_index',
  text: `
    SELECT 1 FROM pg_index
    JOIN pg_class ON pg_class.oid = indexrelid
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'plant_store' AND relname = $1 AND NOT indisvalid`,
};

interface MigrateOptions {
  /** Whether a schema is created if there is none. */
  create: boolean;
  /** Called if the schema is older than the newest. */
  onWork?: () => void;
  /** Aborting it ends what is in progress, which another process can take over at once. */
  stop?: AbortSignal;
}

/**
 * Returns once the schema is the newest, or a newer one that can be used, whoever brought it there. Throws
 * Refusal for one that cannot, and if there is none and it is not to be created.
 */
export async function migrate(
  pool: Pool,
  { create, onWork = () => {}, stop = new AbortController().signal }: MigrateOptions,
): Promise<void> {
  const lease = new Lease(pool, randomUUID());
  let hasAnswered = false;
  /** Since when the server has not answered. */
  let lostSinceMs: number | undefined;
  for (;;) {
    try {
      const schema = await pool.withConnection(readSchema);
      hasAnswered = true;
      lostSinceMs = undefined;
      if (schema === undefined && !create) {
        throw new Refusal('There is no Plant Store in this database.', { kind: 'no-schema' });
      }
      if (schema !== undefined) {
        refuseUnusableSchema(schema);
        if (schema.version >= newestVersion) return;
      }
      onWork();
      if (schema === undefined) await pool.withConnection(makeLedger);
      const isHeld =
        (await pool.withConnection((connection) => lease.acquire(connection))) !== undefined;
      if (isHeld) await bringUp(lease, stop);
      else await pause(pollMs, undefined, { signal: stop });
    } catch (error) {
      lostSinceMs ??= performance.now();
      const isLost = !hasAnswered || performance.now() > lostSinceMs + lostMsMax;
      if (stop.aborted || isLost || !isPassing(error)) throw error;
      await pause(pollMs, undefined, { signal: stop });
    }
  }
}

/** Others were at it too, or the session was lost: then the statement in progress is repeated. */
function isPassing(error: unknown): boolean {
  // Each attempt would end with an internal error of the server again.
  if (codeOf(error)?.startsWith('XX') === true) return false;
  return isRetryable(error) || isConnectionLost(error) || error instanceof LeaseLost;
}

/** Throws Refusal for a newer schema that this program must not use. */
export function refuseUnusableSchema(schema: Schema): void {
  refuseUnusable(schema, newestVersion, 'The database');
}

/** Throws Refusal for a newer schema, which may have columns that this program does not know. */
export async function refuseNewerSchema(connection: Connection): Promise<void> {
  const schema = await readSchema(connection);
  if (schema !== undefined) refuseNewer(schema, newestVersion, 'The database');
}

async function bringUp(lease: Lease, stop: AbortSignal): Promise<void> {
  /** The number before a migration that refuses older programs, until it may have changed anything. */
  let before: number | undefined;
  const work = async (session: Connection) => {
    const number = await lease.renew(session);
    let schema = decodeSchema(number);
    const isNew = schema.version === 0;
    for (const migration of migrations.slice(schema.version)) {
      const next = schemaAfter(schema, migration);
      if (migration.refusesOlder && !isNew) {
        // One that is announced already has been begun by another.
        if (schema.usableFrom <= schema.version) before = encodeSchema(schema);
        const announced = { version: schema.version, usableFrom: next.usableFrom };
        await lease.setNumber(session, encodeSchema(announced));
        await pause(olderMsMax, undefined, { signal: stop });
      }
      for (const step of migration.statements) {
        const unchanged = before;
        before = undefined;
        await run(step, session, lease).catch((error: unknown) => {
          // The server has refused it as a whole.
          if (isStatementError(error) && !step.repeats) before = unchanged;
          throw error;
        });
      }
      await distribute(session);
      await lease.setNumber(session, encodeSchema(next));
      schema = next;
    }
  };
  await lease.hold(work, () => before, stop);
}

async function run(step: MigrationStep, session: Connection, lease: Lease): Promise<void> {
  for (;;) {
    await lease.renew(session);
    if (step.index !== undefined) await dropInvalid(step.index, session);
    // What runs concurrently waits for long without anybody waiting for it.
    await session.command(`SET lock_timeout = ${step.isConcurrent ? 0 : lockMsMax}`);
    try {
      const rows = await session.longStatement(step.text);
      if (!step.repeats || rows === 0) return;
    } catch (error) {
      if (codeOf(error) !== sqlState.lockNotAvailable) throw error;
      await pause(lockPauseMs);
    }
  }
}

/** If its creation was aborted, an index remains that has the name and is never used. */
async function dropInvalid(index: string, session: Connection): Promise<void> {
  if ((await session.query(invalidIndexSql, [index])).length === 0) return;
  await session.command('SET lock_timeout = 0');
  await session.longStatement(`DROP INDEX CONCURRENTLY IF EXISTS plant_store.${index}`);
}

/** Undefined if there is none. */
async function readSchema(connection: Connection): Promise<Schema | undefined> {
  try {
    const [row] = await connection.query(schemaSql, []);
    return row && decodeSchema(row[0]);
  } catch (error) {
    const code = codeOf(error);
    if (code === sqlState.undefinedTable || code === sqlState.invalidSchema) return undefined;
    throw error;
  }
}

async function makeLedger(connection: Connection): Promise<void> {
  // If an administrator has created the schema, the user needs no right to.
  const isThere = (await connection.query(namespaceSql, [])).length > 0;
  for (const statement of isThere ? ledger.slice(1) : ledger) {
    await connection.command(statement).catch((error: unknown) => {
      // Two that make the same at once meet in the catalogue, whatever IF NOT EXISTS says.
      if (!metInCatalogue.has(codeOf(error))) throw error;
    });
  }
}

const metInCatalogue = new Set<string | undefined>([
  sqlState.uniqueViolation,
  sqlState.duplicateSchema,
  sqlState.duplicateTable,
  sqlState.duplicateObject,
]);
