/**
 * Two versions of the program: this one is the older one, and the newer one is a copy with one more migration for each
 * engine.
 */
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { migrations as ofPostgres } from '../../src/postgres/schema/migrate.ts';
import { migrations as ofSqlite } from '../../src/sqlite/file/migrate.ts';
import { call } from './app.ts';
import { runOk, serve, type Service } from './command.ts';
import type { TestDatabase } from './storages.ts';
import { tempFolder } from './temp.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

export interface NewMigration {
  older: 'continue' | 'refused';
  /** The SQL for each engine, empty by default. */
  sqlite?: string;
  postgres?: string;
}

/** Returns the path of the newer executable, which is deleted after the test. */
export function newerProgram(t: Pick<TestContext, 'after'>, migration: NewMigration): string {
  const folder = tempFolder(t);
  for (const part of ['bin', 'src', 'package.json', 'openapi.json']) {
    cpSync(join(root, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  mkdirSync(join(folder, '.cache'));
  const { sqlite = '', postgres = '' } = migration;
  for (const [engine, { newest }, sql] of [
    ['sqlite', ofSqlite, sqlite],
    ['postgres', ofPostgres, postgres],
  ] as const) {
    const name = `${String(newest + 1).padStart(3, '0')}-newer.sql`;
    const text = `-- Older versions: ${migration.older}\n${sql}\n`;
    writeFileSync(join(folder, 'src', engine, 'migrations', name), text);
  }
  return join(folder, 'bin', 'plant-store.js');
}

export const newerWords =
  /was written by a newer Plant Store \(schema \d+, this version supports up to \d+\)\./;

export const indexOfSqlite = 'CREATE INDEX plants_by_name ON plants (store, name, id);';
export const column = 'ALTER TABLE plant_store.plants ADD COLUMN note text;';
export const backfill = 'UPDATE plant_store.plants SET note = name;';

/** A service of this version, and a token for it. */
export async function older(t: Pick<TestContext, 'after'>, { url }: TestDatabase) {
  const env = { PLANT_STORE_DATABASE: url };
  const token = await runOk(['token', 'create', 'alice'], { env });
  return { env, token, service: await serve(t, [], { env }) };
}

export const ask = async ({ address }: Service, token: string, method: string, json?: unknown) =>
  call(`${address}/plants`, method, { token, ...(json !== undefined && { json }) });

/** The status of `/readyz`, which needs no token. */
export const ready = async (address: string) => (await call(`${address}/readyz`, 'GET')).status;
