/**
 * Fills databases directly, without a server. All systems get the same plants and the same tokens.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { makeToken } from '../src/access/token.ts';
import { disposableFirstId, generatePlantsSql } from './plants.ts';
import { schemas, storeNumber, type Schema } from './schemas.ts';

/** SQLite's page cache while it fills a file. */
const fillCacheKiB = 1_000_000;

export interface Population {
  /** The number of plants, which have ids from 1. */
  plants: number;
  users: number;
}

/** The data of one system on disk. Its server can run meanwhile. */
export interface Store {
  /** The argument with which the server opens it. */
  readonly address: string;
  /** Adds plants that a workload deletes. */
  addDisposable(count: number): void | Promise<void>;
  /** Deletes all plants that were created since it was filled. */
  trim(): void | Promise<void>;
}

/** The stores of all systems with one population. */
export interface Seeded extends Population {
  /** The tokens of the users 1, 2, 3, ... */
  tokens: readonly string[];
  /** A file with a token in each line. */
  tokensFile: string;
  service: Store;
  typical: Store;
}

/** Creates SQLite files in the folder. `name` distinguishes them from those of other populations. */
export function seed(folder: string, name: string, population: Population): Seeded {
  const seededTokens = makeTokens(folder, name, population);
  const store = (system: keyof typeof schemas) => {
    const path = join(folder, `${name}-${system}.db`);
    const filled = new SqliteStore(path, schemas[system], population);
    filled.fill(seededTokens.tokens);
    return filled;
  };
  return { ...population, ...seededTokens, service: store('service'), typical: store('typical') };
}

/** A token for each user. */
export function makeTokens(folder: string, name: string, { users }: Population) {
  const tokens = Array.from({ length: users }, () => makeToken(storeNumber));
  const tokensFile = join(folder, `${name}.tokens`);
  writeFileSync(tokensFile, tokens.join('\n'));
  return { tokens, tokensFile };
}

export class SqliteStore implements Store {
  readonly #path: string;
  readonly #schema: Schema;
  readonly #population: Population;

  constructor(path: string, schema: Schema, population: Population) {
    this.#path = path;
    this.#schema = schema;
    this.#population = population;
  }

  get address(): string {
    return this.#schema.address(this.#path);
  }

  fill(tokens: readonly string[]): void {
    const { plants, users } = this.#population;
    const { insertGenerated, raiseLastId } = this.#schema;
    this.#write((database) => {
      database.exec(`PRAGMA cache_size = -${fillCacheKiB}`);
      this.#schema.addUsers(database, tokens);
      withIndexesDropped(database, () => {
        database.exec(generatePlantsSql(1, plants, users) + insertGenerated);
      });
      if (raiseLastId !== undefined) database.prepare(raiseLastId).run({ id: plants });
    });
  }

  addDisposable(count: number): void {
    const generated = generatePlantsSql(disposableFirstId, count, this.#population.users);
    this.#write((database) => database.exec(generated + this.#schema.insertGenerated));
  }

  trim(): void {
    const { plants: id } = this.#population;
    this.#write((database) => database.prepare(this.#schema.deleteAbove).run({ id }));
  }

  /** Writes in one transaction and empties the WAL, so that this work does not slow down a measured system. */
  #write(work: (database: DatabaseSync) => void): void {
    const database = this.#schema.open(this.#path);
    database.exec('BEGIN IMMEDIATE');
    work(database);
    database.exec('COMMIT');
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    database.close();
  }
}

/** Building an index once after filling is much faster than updating it for each row. */
function withIndexesDropped(database: DatabaseSync, fill: () => void): void {
  const indexes = database
    .prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'plants'`)
    .all()
    .filter(({ sql }) => sql !== null); // the index of a primary key has none and cannot be dropped
  for (const { name } of indexes) database.exec(`DROP INDEX ${String(name)}`);
  fill();
  for (const { sql } of indexes) database.exec(String(sql));
}
