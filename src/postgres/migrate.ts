/**
 * Brings a database to the newest schema: the numbered files of migrations/, each statement a
 * transaction of its own that may be repeated. A row is the lock, so that ten replicas that start at
 * once do it once; it is a lease, so that one that dies does not lock the others out.
 */
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Refusal } from '../refusal.ts';
import type { Connection, Statement } from './connection.ts';
import { distribute } from './citus.ts';
import { codeOf, isWorthRetrying, sqlState } from './errors.ts';

/** How long the lock holds without being renewed: longer than a statement may take. */
const leaseSeconds = 10;
const pollMs = 100;

const folder = new URL('./migrations/', import.meta.url);
const files = readdirSync(folder)
  .filter((file) => file.endsWith('.sql'))
  .toSorted();

/** The schema that this program knows. */
export const newestVersion = files.length;

/** Made before anything else, and by whoever comes first. */
const ledger = [
  'CREATE SCHEMA IF NOT EXISTS plant_store',
  `CREATE TABLE IF NOT EXISTS plant_store.migrations (
     id      integer NOT NULL PRIMARY KEY CHECK (id = 1),
     version integer NOT NULL,
     holder  text    NOT NULL,
     held_until timestamptz NOT NULL,
     -- What is being copied to here and not yet whole.
     copy_of text
   )`,
  `INSERT INTO plant_store.migrations (id, version, holder, held_until)
   VALUES (1, 0, '', '-infinity') ON CONFLICT DO NOTHING`,
];

const versionSql: Statement = {
  name: 'schema_version',
  text: 'SELECT version FROM plant_store.migrations WHERE id = 1',
};

const schemaSql: Statement = {
  name: 'schema_is_there',
  text: "SELECT 1 FROM pg_namespace WHERE nspname = 'plant_store'",
};

const takeLock: Statement = {
  name: 'take_lock',
  text: `
    UPDATE plant_store.migrations
    SET holder = $1, held_until = now() + interval '${leaseSeconds} seconds'
    WHERE id = 1 AND (held_until < now() OR holder = $1)
    RETURNING version`,
};

const raiseVersion: Statement = {
  name: 'raise_version',
  text: 'UPDATE plant_store.migrations SET version = $2 WHERE id = 1 AND holder = $1 RETURNING id',
};

const releaseLock: Statement = {
  name: 'release_lock',
  text: `
    UPDATE plant_store.migrations SET holder = '', held_until = '-infinity'
    WHERE id = 1 AND holder = $1`,
};

/**
 * Returns once the schema is the newest, whoever brought it there. Throws Refusal for a newer one, and
 * for none where it is not to be made.
 */
export async function migrate(
  connection: Connection,
  { create }: { create: boolean },
): Promise<void> {
  const holder = randomUUID();
  for (;;) {
    const version = await versionOf(connection);
    if (version === undefined && !create) {
      throw new Refusal('There is no Plant Store in this database.', { kind: 'no-schema' });
    }
    if (version === newestVersion) return;
    if (version !== undefined && version > newestVersion) {
      throw new Refusal(
        `The database was written by a newer Plant Store (schema ${version}, this one knows ${newestVersion}).`,
        { kind: 'newer-schema' },
      );
    }
    try {
      if (version === undefined) await makeLedger(connection);
      const [held] = await connection.query(takeLock, [holder]);
      if (held !== undefined) await bringUp(connection, holder, Number(held[0]));
      else await pause(pollMs);
    } catch (error) {
      if (!isWorthRetrying(error)) throw error; // otherwise others were at it too
      await pause(pollMs);
    }
  }
}

async function bringUp(connection: Connection, holder: string, version: number): Promise<void> {
  for (const [at, file] of files.entries()) {
    if (at < version) continue;
    for (const statement of statementsOf(readFileSync(new URL(file, folder), 'utf8'))) {
      const [held] = await connection.query(takeLock, [holder]);
      if (held === undefined) return; // it took so long that another has taken over
      await connection.command(statement);
    }
    await distribute(connection);
    await connection.query(raiseVersion, [holder, at + 1]);
  }
  await connection.query(releaseLock, [holder]);
}

/** Undefined where there is no schema. */
async function versionOf(connection: Connection): Promise<number | undefined> {
  try {
    const [row] = await connection.query(versionSql, []);
    return row && Number(row[0]);
  } catch (error) {
    const code = codeOf(error);
    if (code === sqlState.undefinedTable || code === sqlState.invalidSchema) return undefined;
    throw error;
  }
}

async function makeLedger(connection: Connection): Promise<void> {
  // Where an administrator has made the schema, the user need not be allowed to.
  const isThere = (await connection.query(schemaSql, [])).length > 0;
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

/** The statements of a file, without the comments between them; no text in one has a semicolon. */
function statementsOf(sql: string): string[] {
  return sql
    .replace(/^\s*--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}
