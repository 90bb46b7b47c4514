/**
 * The one server that all tests of a run share, each with a database of its own:
 * PLANT_STORE_TEST_DATABASE where it is set, otherwise one of ours. `node --test` calls what is exported
 * here before and after all files; a file that runs alone has a server to itself.
 */
import { PostgresServer, query } from './postgres.ts';

const variable = 'PLANT_STORE_TEST_DATABASE';
let own: PostgresServer | undefined;
let starting: Promise<string> | undefined;

/** An address of it, whose user may create databases. */
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
