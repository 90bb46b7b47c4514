/**
 * Fills databases directly, without a server. All systems get the same plants and the same tokens.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashToken, makeToken } from '../src/access/token.ts';
import { disposableFirstId, generatePlantsSql } from './plants.ts';
import { storeNumber, type Schema } from './schemas.ts';
import { openSqlite } from './sqlite.ts';

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

/** The systems that have a database. */
export type Stored = 'service' | 'typical';

/** The stores of all systems with one population. */
export interface Seeded extends Population, Record<Stored, Store> {
  /** A file with the token of a user in each line. */
  tokensFile: string;
}

/** A database with the tables of a system. */
export interface Database {
  address: string;
  schema: Schema;
  /** Creates the table hashes (number, hash) from these hashes in hexadecimal, and runs the SQL. */
  fill(hashes: readonly string[], sql: string): void | Promise<void>;
  /** Runs the SQL, and tidies up, so that this work does not slow down a measured system. */
  run(sql: string): void | Promise<void>;
}

/** Creates SQLite files in the folder. `name` distinguishes them from those of other populations. */
export function seed(folder: string, name: string, population: Population): Promise<Seeded> {
  const open = (system: Stored) => openSqlite(join(folder, `${name}-${system}.db`), system);
  return fill(folder, name, population, open);
}

/** Fills the empty databases that `open` creates. */
export async function fill(
  folder: string,
  name: string,
  population: Population,
  open: (system: Stored) => Database | Promise<Database>,
): Promise<Seeded> {
  const { plants, users } = population;
  const tokens = Array.from({ length: users }, () => makeToken(storeNumber));
  const hashes = tokens.map((token) => hashToken(token).toString('hex'));
  const tokensFile = join(folder, `${name}.tokens`);
  writeFileSync(tokensFile, tokens.join('\n'));

  const storeOf = async (system: Stored): Promise<Store> => {
    const database = await open(system);
    const { addUsers, insertGenerated, deleteAbove, changed } = database.schema;
    const change = (sql: string) => sql + (changed?.(plants) ?? '');
    const insert = (firstId: number, count: number) =>
      change(generatePlantsSql(firstId, count, users) + insertGenerated);
    await database.fill(hashes, addUsers + insert(1, plants));
    return {
      address: database.address,
      addDisposable: (count) => database.run(insert(disposableFirstId, count)),
      trim: () => database.run(change(`${deleteAbove} ${plants};`)),
    };
  };
  const [service, typical] = [await storeOf('service'), await storeOf('typical')];
  return { ...population, tokensFile, service, typical };
}
