/**
 * The PostgreSQL server that all tests of a run share, each with its own database. It is that of
 * PLANT_STORE_TEST_DATABASE, or else a new one.
 *
 * `node --test` calls globalSetup() and globalTeardown(). A test file that runs without them starts its own
 * server.
 */
import { PostgresServer, query } from './postgres.ts';

const variable = 'PLANT_STORE_TEST_DATABASE';
let own: PostgresServer | undefined;
let starting: Promise<string> | undefined;

/** The address of the server. Its user must be able to create databases. */
export function postgresUrl(): Promise<string> {
  starting ??= start();
  return starting;
}

export async function globalSetup(): Promise<void> {
  process.env[variable] = await postgresUrl(); // for the processes of the test files
  const [row] = await query(process.env[variable], 'SELECT version()');
  console.log(`SQLite ${process.versions['sqlite']}; ${(row as { version: string }).version}`);
}

export async function globalTeardown(): Promise<void> {
  await own?.[Symbol.asyncDispose]();
}

async function start(): Promise<string> {
  const given = process.env[variable];
  if (given !== undefined) return given;
  own = await PostgresServer.make();
  process.once('exit', () => own?.kill());
  return own.url();
}
