/**
 * Fills a PostgreSQL server with the same plants and tokens as seed.ts, in a database for each system. Also reads
 * the size of its tables and the number of connections. The server runs only during the bench.
 */
import { PostgresServer, query } from '../test/support/postgres.ts';
import { formatNumber, table } from './figures.ts';
import { disposableFirstId, generatePlantsSql } from './plants.ts';
import { postgresSchemas, type PostgresSchema } from './postgres-schemas.ts';
import { makeTokens, type Population, type Seeded, type Store } from './seed.ts';

/** Each database has the name of its system. */
const databases = ['service', 'typical'] as const;
type Database = (typeof databases)[number];

export class Postgres implements AsyncDisposable {
  readonly #server: PostgresServer;
  /** By database: the largest number of connections that was sampled. */
  #connections = new Map<string, number>();
  /** By database: the size right after it was filled. */
  readonly #bytesEachPlant = new Map<Database, number>();

  private constructor(server: PostgresServer) {
    this.#server = server;
  }

  /** Starts the server. It ends with this process in any case. */
  static async start(): Promise<Postgres> {
    const server = await PostgresServer.make();
    process.once('exit', () => server.kill());
    return new Postgres(server);
  }

  async version(): Promise<string> {
    const [row] = await this.#server.query("SELECT current_setting('server_version') AS version");
    const { version } = row as { version: string }; // the selected column
    return `PostgreSQL ${version}`;
  }

  /** Creates both databases, and drops those of an earlier population. */
  async seed(folder: string, name: string, population: Population): Promise<Seeded> {
    this.#connections = new Map();
    const seededTokens = makeTokens(folder, name, population);
    const store = async (database: Database) => {
      await this.#server.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
      await this.#server.query(`CREATE DATABASE ${database}`);
      const url = this.#server.url(database);
      const filled = new PostgresStore(url, postgresSchemas[database], population);
      await filled.fill(seededTokens.tokens);
      this.#bytesEachPlant.set(database, (await filled.bytes()) / population.plants);
      return filled;
    };
    const [service, typical] = [await store('service'), await store('typical')];
    return { ...population, ...seededTokens, service, typical };
  }

  /** Counts the connections to each database. */
  async sampleConnections(): Promise<void> {
    const rows = await this.#server.query(
      'SELECT datname AS database, count(*)::integer AS count FROM pg_stat_activity GROUP BY datname',
    );
    // The selected columns.
    for (const { database, count } of rows as { database: string; count: number }[]) {
      const most = Math.max(count, this.#connections.get(database) ?? 0);
      this.#connections.set(database, most);
    }
  }

  /** A table of the databases that were seeded last. */
  table(): string {
    const rows = databases.map((database) => [
      database,
      formatNumber(this.#bytesEachPlant.get(database) ?? Number.NaN),
      formatNumber(this.#connections.get(database) ?? 0),
    ]);
    return table(['Database', 'Bytes for each plant', 'Connections at the peak'], rows);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

/** The database of one system. */
class PostgresStore implements Store {
  readonly address: string;
  readonly #schema: PostgresSchema;
  readonly #population: Population;

  constructor(address: string, schema: PostgresSchema, population: Population) {
    this.address = address;
    this.#schema = schema;
    this.#population = population;
  }

  async fill(tokens: readonly string[]): Promise<void> {
    const { plants, users } = this.#population;
    await this.#schema.addUsers(this.address, tokens);
    await this.#change(generatePlantsSql(1, plants, users) + this.#schema.insertGenerated);
  }

  async addDisposable(count: number): Promise<void> {
    const generated = generatePlantsSql(disposableFirstId, count, this.#population.users);
    await this.#change(generated + this.#schema.insertGenerated);
  }

  async trim(): Promise<void> {
    await this.#change(`DELETE FROM ${this.#schema.plants} WHERE id > ${this.#population.plants}`);
  }

  /** The size of the plants on disk, with all indexes. */
  async bytes(): Promise<number> {
    const [row] = await query(
      this.address,
      `SELECT pg_total_relation_size('${this.#schema.plants}')::float8 AS bytes`,
    );
    return (row as { bytes: number }).bytes; // the selected column
  }

  /** Runs the SQL, then vacuums and checkpoints, so that this work does not slow down a measured system. */
  async #change(sql: string): Promise<void> {
    await query(this.address, `${sql}; ${this.#schema.changed(this.#population.plants)}`);
    await query(this.address, 'VACUUM (ANALYZE)');
    await query(this.address, 'CHECKPOINT');
  }
}
