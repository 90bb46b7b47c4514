/**
 * The storage on node:sqlite. One connection; each write is a transaction with a synced commit,
 * each read a statement of its own that is over before the method returns, so nothing holds the
 * WAL open.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Caller, Grant } from '../access.ts';
import type { NewPlant, Plant } from '../plant.ts';
import { Problem } from '../problem.ts';
import type {
  NewToken,
  PlantPage,
  PlantQuery,
  Storage,
  TokenQuery,
  TokenRecord,
} from '../storage.ts';
import { openDatabase, type OpenOptions } from './database.ts';
import { leavesConnectionSound, problemOf, unavailable, type Stage } from './errors.ts';
import { Plants } from './plants.ts';
import { Tokens } from './tokens.ts';

interface Connection {
  database: DatabaseSync;
  plants: Plants;
  tokens: Tokens;
}

export class SqliteStorage implements Storage {
  readonly #path: string;
  #connection: Connection | undefined;

  /** Opens the file. Throws Refusal where it cannot be used. */
  constructor(path: string, options: OpenOptions) {
    this.#path = path;
    this.#connection = connect(path, options);
  }

  async createPlant(caller: Caller, plant: NewPlant): Promise<Plant> {
    return this.#write(({ plants }) => plants.create(caller, plant));
  }

  async findPlant(caller: Caller, id: number): Promise<Plant | undefined> {
    return this.#read(({ plants }) => plants.find(caller, id));
  }

  async listPlants(caller: Caller, query: PlantQuery): Promise<PlantPage> {
    return this.#read(({ plants }) => plants.list(caller, query));
  }

  async deletePlant(caller: Caller, id: number): Promise<boolean> {
    return this.#write(({ plants }) => plants.delete(caller, id));
  }

  async createToken(token: NewToken): Promise<void> {
    this.#write(({ tokens }) => tokens.create(token));
  }

  async findGrant(tokenHash: Uint8Array): Promise<Grant | undefined> {
    return this.#read(({ tokens }) => tokens.findGrant(tokenHash));
  }

  async listTokens(query: TokenQuery): Promise<TokenRecord[]> {
    return this.#read(({ tokens }) => tokens.list(query));
  }

  async revokeToken(id: string, revokedAtMs: number): Promise<TokenRecord | undefined> {
    return this.#write(({ tokens }) => tokens.revoke(id, revokedAtMs));
  }

  async check(): Promise<void> {
    this.#read(({ database }) => database.prepare('SELECT max(store) FROM stores').get());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection?.database.close();
    this.#connection = undefined;
  }

  #read<T>(work: (connection: Connection) => T): T {
    try {
      return work(this.#connected());
    } catch (error) {
      throw this.#failed(error, 'before-commit');
    }
  }

  #write<T>(work: (connection: Connection) => T): T {
    let stage: Stage = 'before-commit';
    try {
      const connection = this.#connected();
      // IMMEDIATE: a read that turns into a write later is refused whatever the timeout.
      connection.database.exec('BEGIN IMMEDIATE');
      const result = work(connection);
      stage = 'commit';
      connection.database.exec('COMMIT');
      return result;
    } catch (error) {
      throw this.#failed(error, stage);
    }
  }

  #connected(): Connection {
    try {
      this.#connection ??= connect(this.#path, { create: false });
      return this.#connection;
    } catch (error) {
      throw new Problem('storage-unavailable', unavailable, { cause: error });
    }
  }

  /** What to throw for `error`, once the connection is sound again or gone. */
  #failed(error: unknown, stage: Stage): unknown {
    const problem = problemOf(error, stage);
    const { database } = this.#connection ?? {};
    try {
      if (database?.isTransaction) database.exec('ROLLBACK');
      if (problem === error || leavesConnectionSound(error)) return problem;
    } catch {
      // A connection that cannot roll back is dropped; closing it ends its transaction.
    }
    // After an I/O error, what the connection holds in memory may differ from what is on disk.
    this.#connection = undefined;
    database?.close();
    return problem;
  }
}

function connect(path: string, options: OpenOptions): Connection {
  const database = openDatabase(path, options);
  return { database, plants: new Plants(database), tokens: new Tokens(database) };
}
