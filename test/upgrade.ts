/**
 * Upgrades of PostgreSQL: an older program, and a transaction that a newer one waits for.
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
export const column = 'ALTER TABLE plant_store.plants ADD COLUMN note text;';
export const backfill = 'UPDATE plant_store.plants SET note = name;';
export const index = 'CREATE INDEX plants_by_name ON plant_store.plants (store, name, id);';

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
    /** Whether the migration waits for the lock. */
    waits: async () => {
      const rows = await select(
        `SELECT 1 FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%ALTER TABLE%'`,
      );
      return rows.length > 0;
    },
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
