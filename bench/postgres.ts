/**
 * A PostgreSQL server with a database for each system. It runs only during the bench.
 */
import { readFileSync } from 'node:fs';
import { PostgresStorage } from '../src/postgres/storage.ts';
import { PostgresServer, query } from '../test/support/postgres.ts';
import { schemas } from './schemas.ts';
import { fill, type Database, type Population, type Seeded, type Stored } from './seed.ts';

export class Postgres implements AsyncDisposable {
  readonly #server: PostgresServer;
  readonly #kill = () => this.#server.kill();

  private constructor(server: PostgresServer) {
    this.#server = server;
  }

  /** Starts the server. It ends with this process in any case. */
  static async start(): Promise<Postgres> {
    const postgres = new Postgres(await PostgresServer.make());
    process.once('exit', postgres.#kill);
    return postgres;
  }

  async version(): Promise<string> {
    const [row] = await this.#server.query("SELECT current_setting('server_version') AS version");
    const { version } = row as { version: string }; // the selected column
    return `PostgreSQL ${version}`;
  }

  seed(folder: string, name: string, population: Population): Promise<Seeded> {
    return fill(folder, name, population, (system) => this.#create(system));
  }

  async #create(system: Stored): Promise<Database> {
    await this.#server.query(`CREATE DATABASE ${system}`);
    const address = this.#server.url(system);
    const run = async (sql: string) => {
      await query(address, sql);
      await query(address, 'VACUUM (ANALYZE)');
      await query(address, 'CHECKPOINT');
    };
    await { service: createTables, typical: createTypicalTables }[system](address);
    return {
      address,
      schema: schemas.postgres[system],
      fill: (hashes, sql) =>
        run(`
          CREATE TEMP TABLE hashes AS
          SELECT number, decode(hex, 'hex') AS hash
          FROM string_to_table('${hashes.join()}', ',') WITH ORDINALITY AS hashes (hex, number);
          ${sql}`),
      run,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
    process.off('exit', this.#kill);
  }
}

async function createTables(address: string): Promise<void> {
  await using storage = new PostgresStorage(address);
  await storage.open();
}

async function createTypicalTables(address: string): Promise<void> {
  await query(
    address,
    readFileSync(new URL('./peers/schema-postgres.sql', import.meta.url), 'utf8'),
  );
}
