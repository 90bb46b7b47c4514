/**
 * Upgrades of PostgreSQL that are interrupted half-way.
 */
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { Client } from 'pg';
import { encodeSchema, readMigrations, schemaAfter } from '../src/shared/migrations.ts';
import { call } from './support/app.ts';
import { runOk, serve, start, type Service } from './support/command.ts';
import { query } from './support/postgres.ts';
import { emptyDatabase, type TestDatabase } from './support/storages.ts';
import { newerProgram } from './support/versions.ts';

export const newerWords =
  /was written by a newer Plant Store \(schema \d+, this version supports up to \d+\)\./;

export const indexOfSqlite = 'CREATE INDEX plants_by_name ON plants (store, name, id);';
export const column = 'ALTER TABLE plant_store.plants ADD COLUMN IF NOT EXISTS note text;';
export const table = 'CREATE TABLE IF NOT EXISTS plant_store.notes (store bigint, note text);';
export const index = `
  CREATE INDEX CONCURRENTLY IF NOT EXISTS plants_by_name ON plant_store.plants (store, name, id);`;
/** Two rows at a time. */
export const backfill = `
  -- Repeat until it changes no row.
  UPDATE plant_store.plants SET note = name WHERE (store, id) IN (
    SELECT store, id FROM plant_store.plants WHERE note IS NULL LIMIT 2);`;

export async function older(t: TestContext, { url }: TestDatabase) {
  const env = { PLANT_STORE_DATABASE: url };
  const token = await runOk(['token', 'create', 'alice'], { env });
  return { env, token, service: await serve(t, [], { env }) };
}

export const ask = async ({ address }: Service, token: string, method: string, json?: unknown) =>
  call(`${address}/plants`, method, { token, ...(json !== undefined && { json }) });

/** A database of an older version, and a transaction that a statement of the migration waits for. */
export async function blocked(
  t: TestContext,
  postgres: string,
  lock: string,
  olderVersions: 'continue' | 'refused' = 'continue',
) {
  const database = await emptyDatabase(t, 'PostgreSQL');
  const { env, token, service } = await older(t, database);
  const program = newerProgram(t, { older: olderVersions, postgres });
  const blocker = new Client({ connectionString: database.url });
  blocker.on('error', () => {}); // its database is dropped
  await blocker.connect();
  t.after(() => blocker.end());
  await blocker.query(`BEGIN; ${lock}`);
  const select = async (sql: string) =>
    (await query(database.url, sql)) as Record<string, unknown>[];
  return {
    env,
    program,
    select,
    read: async () => (await ask(service, token, 'GET')).status,
    unblock: () => blocker.query('COMMIT'),
    migrate: () => {
      const child = start(['migrate'], { env, program });
      t.after(() => child.kill('SIGKILL'));
      return { child, ended: once(child, 'close') };
    },
    /** Whether the index is valid; undefined if there is none. */
    async index() {
      const [row] = await select(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('plant_store.plants_by_name')",
      );
      return row?.['indisvalid'];
    },
    sessions: () =>
      select(
        `SELECT pid, wait_event_type AS waits, query FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'plant-store migration'`,
      ),
    async number() {
      const [row] = await select('SELECT version FROM plant_store.migrations');
      return row?.['version'];
    },
  };
}

const migrations = readMigrations(new URL('../src/postgres/migrations/', import.meta.url));
const schema = migrations.reduce(schemaAfter, { version: 0, usableFrom: 0 });
/** The number of the schema before the upgrade, and after it. */
export const before = encodeSchema(schema);
export const done = encodeSchema({ ...schema, version: schema.version + 1 });
export const writes = 'LOCK TABLE plant_store.plants IN ROW EXCLUSIVE MODE';
