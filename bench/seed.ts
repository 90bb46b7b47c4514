/**
 * Fills databases without a server in between, from rules that every system shares, so that all of
 * them hold the same plants under the same tokens.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { makeToken } from '../src/token.ts';
import { fodderFirstId, madeSql } from './plants.ts';
import { schemas, type Schema } from './schemas.ts';

/** What SQLite may keep in memory while it fills a file, in KiB. */
const fillCacheKiB = 1_000_000;

export interface Population {
  /** Plants, with the ids from 1 on. */
  plants: number;
  users: number;
}

/** What one system keeps on disk; its server may run meanwhile. */
export interface Store {
  /** How the server is told to open it. */
  readonly address: string;
  /** Adds plants that are there to be deleted. */
  addFodder(count: number): void | Promise<void>;
  /** Takes out what was created since it was filled, fodder included. */
  trim(): void | Promise<void>;
}

/** The stores of all systems with one population. */
export interface Seeded extends Population {
  /** Of the users 1, 2, 3, ... */
  tokens: readonly string[];
  /** A file with a token in each line. */
  tokensFile: string;
  service: Store;
  typical: Store;
}

/** Makes SQLite files in the folder; `name` tells them from those of other populations. */
export function seed(folder: string, name: string, population: Population): Seeded {
  const made = makeTokens(folder, name, population);
  const store = (system: keyof typeof schemas) => {
    const path = join(folder, `${name}-${system}.db`);
    const filled = new SqliteStore(path, schemas[system], population);
    filled.fill(made.tokens);
    return filled;
  };
  return { ...population, ...made, service: store('service'), typical: store('typical') };
}

/** A token for each user. */
export function makeTokens(folder: string, name: string, { users }: Population) {
  const tokens = Array.from({ length: users }, makeToken);
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
    const { insertMade, raiseLastId } = this.#schema;
    this.#write((database) => {
      database.exec(`PRAGMA cache_size = -${fillCacheKiB}`);
      this.#schema.addUsers(database, tokens);
      withoutIndexes(database, () => {
        database.exec(madeSql(1, plants, users) + insertMade);
      });
      if (raiseLastId !== undefined) database.prepare(raiseLastId).run({ id: plants });
    });
  }

  addFodder(count: number): void {
    const made = madeSql(fodderFirstId, count, this.#population.users);
    this.#write((database) => database.exec(made + this.#schema.insertMade));
  }

  trim(): void {
    const { plants: id } = this.#population;
    this.#write((database) => database.prepare(this.#schema.deleteAbove).run({ id }));
  }

  /** In one transaction, and with the WAL empty again afterwards: no system has to pay for it. */
  #write(work: (database: DatabaseSync) => void): void {
    const database = this.#schema.open(this.#path);
    database.exec('BEGIN IMMEDIATE');
    work(database);
    database.exec('COMMIT');
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    database.close();
  }
}

/** Sorting an index once, when its rows are there, is much faster than placing each row in it. */
function withoutIndexes(database: DatabaseSync, fill: () => void): void {
  const indexes = database
    .prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'plants'`)
    .all()
    .filter(({ sql }) => sql !== null); // one of a primary key has none, and stays
  for (const { name } of indexes) database.exec(`DROP INDEX ${String(name)}`);
  fill();
  for (const { sql } of indexes) database.exec(String(sql));
}
