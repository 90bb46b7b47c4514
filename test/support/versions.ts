/**
 * Creates a newer version of the program: a copy with one more migration for each engine.
 */
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { newestVersion as newestOnPostgres } from '../../src/postgres/schema/migrate.ts';
import { newestVersion as newestOnSqlite } from '../../src/sqlite/file/migrate.ts';
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
  const { older, sqlite = '', postgres = '' } = migration;
  for (const [engine, newest, sql] of [
    ['sqlite', newestOnSqlite, sqlite],
    ['postgres', newestOnPostgres, postgres],
  ] as const) {
    const name = `${String(newest + 1).padStart(3, '0')}-newer.sql`;
    const text = `-- Older versions: ${older}\n${sql}\n`;
    writeFileSync(join(folder, 'src', engine, 'migrations', name), text);
  }
  return join(folder, 'bin', 'plant-store.js');
}
