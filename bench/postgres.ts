/**
 * The same plants under the same tokens as seed.ts has them, on a PostgreSQL server of the run's own
 * with a database for each system; and what such a server tells of them.
 */
import { PostgresServer, query } from '../test/support/postgres.ts';
import { shown, table } from './figures.ts';
import { fodderFirstId, madeSql } from './plants.ts';
import { postgresSchemas, type PostgresSchema } from './postgres-schemas.ts';
import { makeTokens, type Population, type Seeded, type Store } from './seed.ts';

/** Both databases are called as their system. */
const databases = ['service', 'typical'] as const;
type Database = (typeof databases)[number];

export class Postgres implements AsyncDisposable {
  readonly #server: PostgresServer;
  /** By database: the most connections that were there when somebody looked. */
  #connections = new Map<string, number>();
  /** By database: right after it was filled. */
  readonly #bytesEachPlant = new Map<Database, number>();

  private constructor(server: PostgresServer) {
    this.#server = server;
  }

  /** Starts the server; it goes with this process, however that ends. */
  static async start(): Promise<Postgres> {
    const server = await PostgresServer.make();
    process.once('exit', () => server.kill());
    return new Postgres(server);
  }

  async version(): Promise<string> {
    const [row] = await this.#server.query("SELECT current_setting('server_version') AS version");
    const { version } = row as { version: string }; // the column asked for
    return `PostgreSQL ${version}`;
  }

  /** Makes both databases, in place of those of another population. */
  async seed(folder: string, name: string, population: Population): Promise<Seeded> {
    this.#connections = new Map();
    const made = makeTokens(folder, name, population);
    const store = async (database: Database) => {
      await this.#server.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
      await this.#server.query(`CREATE DATABASE ${database}`);
      const url = this.#server.url(database);
      const filled = new PostgresStore(url, postgresSchemas[database], population);
      await filled.fill(made.tokens);
      this.#bytesEachPlant.set(database, (await filled.bytes()) / population.plants);
      return filled;
    };
    const [service, typical] = [await store('service'), await store('typical')];
    return { ...population, ...made, service, typical };
  }

  /** Counts the connections to each database. */
  async look(): Promise<void> {
    const rows = await this.#server.query(
      'SELECT datname AS database, count(*)::integer AS count FROM pg_stat_activity GROUP BY datname',
    );
    // The columns asked for.
    for (const { database, count } of rows as { database: string; count: number }[]) {
      const most = Math.max(count, this.#connections.get(database) ?? 0);
      this.#connections.set(database, most);
    }
  }

  /** Of what was seeded last. */
  table(): string {
    const rows = databases.map((database) => [
      database,
      shown(this.#bytesEachPlant.get(database) ?? Number.NaN),
      shown(this.#connections.get(database) ?? 0),
    ]);
    return table(['Database', 'Bytes for each plant', 'Connections at the peak'], rows);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

/** A database of one system. */
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
    await this.#change(madeSql(1, plants, users) + this.#schema.insertMade);
  }

  async addFodder(count: number): Promise<void> {
    const made = madeSql(fodderFirstId, count, this.#population.users);
    await this.#change(made + this.#schema.insertMade);
  }

  async trim(): Promise<void> {
    await this.#change(`DELETE FROM ${this.#schema.plants} WHERE id > ${this.#population.plants}`);
  }

  /** What plants take on disk, with all indexes. */
  async bytes(): Promise<number> {
    const [row] = await query(
      this.address,
      `SELECT pg_total_relation_size('${this.#schema.plants}')::float8 AS bytes`,
    );
    return (row as { bytes: number }).bytes; // the column asked for
  }

  /** Cleaned up after and on disk, so that no system has to pay for it. */
  async #change(sql: string): Promise<void> {
    await query(this.address, `${sql}; ${this.#schema.changed(this.#population.plants)}`);
    await query(this.address, 'VACUUM (ANALYZE)');
    await query(this.address, 'CHECKPOINT');
  }
}
