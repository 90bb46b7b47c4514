/**
 * The PostgreSQL server that all tests of a run share, each with its own database. It is that of
 * PLANT_STORE_TEST_DATABASE, or else a new one.
 *
 * `node --test` calls globalSetup() and globalTeardown(). A test file that runs without them starts its own
 * server.
 */
import { randomBytes } from 'node:crypto';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { isCitus } from './citus.ts';
import { PostgresServer, query } from './postgres.ts';
import { useMemory } from './temp.ts';

const variable = 'PLANT_STORE_TEST_DATABASE';
const templateVariable = 'PLANT_STORE_TEST_TEMPLATE';
let own: PostgresServer | undefined;
let starting: Promise<string> | undefined;
let freeMemory = () => {};

/** The address of the server. Its user must be able to create databases. */
export function postgresUrl(): Promise<string> {
  starting ??= start();
  return starting;
}

/** A database with the newest schema and no rows: copying it is faster than migrating. Undefined if there is none. */
export function postgresTemplate(): string | undefined {
  return process.env[templateVariable];
}

export async function globalSetup(): Promise<void> {
  freeMemory = useMemory();
  const url = await postgresUrl();
  process.env[variable] = url; // for the processes of the test files
  if (postgresTemplate() === undefined && !isCitus) await makeTemplate(url);
  const [row] = await query(url, 'SELECT version()');
  console.log(`SQLite ${process.versions['sqlite']}; ${(row as { version: string }).version}`);
}

export async function globalTeardown(): Promise<void> {
  const template = postgresTemplate();
  if (template !== undefined) await query(await postgresUrl(), `DROP DATABASE ${template}`);
  await own?.[Symbol.asyncDispose]();
  freeMemory();
}

async function start(): Promise<string> {
  const given = process.env[variable];
  if (given !== undefined) return given;
  own = await PostgresServer.make();
  process.once('exit', () => own?.kill());
  await makeTemplate(own.url());
  return own.url();
}

async function makeTemplate(server: string): Promise<void> {
  const name = `plant_store_template_${randomBytes(8).toString('hex')}`;
  await query(server, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  await using storage = new PostgresStorage(url.href, { create: true });
  await storage.open();
  process.env[templateVariable] = name;
}
