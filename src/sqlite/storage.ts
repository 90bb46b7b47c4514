/**
 * The storage on node:sqlite. Reads run here, each a statement of its own that is over before the
 * method returns, so that nothing holds the WAL open; writes go to a thread of their own.
 */
import type { Caller, Grant } from '../access.ts';
import { firstPageKey } from '../first-page.ts';
import type { NewPlant, Plant } from '../plant.ts';
import { storageUnavailable } from '../problem.ts';
import { unfinishedCopy } from '../refusal.ts';
import type {
  NewToken,
  PlantPage,
  PlantQuery,
  Storage,
  TokenQuery,
  TokenRecord,
} from '../storage.ts';
import { Connection } from './connection.ts';
import type { OpenOptions } from './database.ts';
import { Writer } from './writer.ts';

/** A list of any length fills it, so it is part of what a list costs in memory. */
const cacheKiB = 5_120;

const unfinishedSql = `SELECT 1 FROM sqlite_schema WHERE name = 'unfinished_copy'`;

export class SqliteStorage implements Storage {
  readonly #connection: Connection;
  readonly #writer: Writer;

  /**
   * Opens the file. Throws Refusal where it cannot be used. `onDiskFailure` is called once, if the disk
   * fails a commit: from then on every write is refused.
   */
  constructor(
    path: string,
    options: OpenOptions,
    onDiskFailure: (cause: unknown) => void = () => {},
  ) {
    this.#connection = new Connection(path, cacheKiB);
    this.#connection.open(options);
    if (this.#isUnfinished()) {
      this.#connection.close();
      throw unfinishedCopy();
    }
    this.#writer = new Writer(path, () => this.#connection.forgetPages(), onDiskFailure);
  }

  async createPlant({ store, user, role }: Caller, plant: NewPlant): Promise<Plant> {
    return this.#writer.write({ kind: 'createPlant', caller: { store, user, role }, plant });
  }

  async findPlant(caller: Caller, id: number): Promise<Plant | undefined> {
    return this.#connection.read(({ plants }) => plants.find(caller, id));
  }

  async listPlants(caller: Caller, query: PlantQuery): Promise<PlantPage> {
    return this.#connection.read(({ watch, plants }) => {
      const read = () => plants.list(caller, query);
      const key = firstPageKey(caller, query);
      return key === undefined ? read() : watch.pages.recall(key, read);
    });
  }

  async deletePlant({ store, user, role }: Caller, id: number): Promise<boolean> {
    return this.#writer.write({ kind: 'deletePlant', caller: { store, user, role }, id });
  }

  async createToken(token: NewToken): Promise<void> {
    return this.#writer.write({ kind: 'createToken', token });
  }

  async findGrant(tokenHash: Uint8Array): Promise<Grant | undefined> {
    const { buffer, byteOffset, byteLength } = tokenHash;
    const key = Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
    return this.#connection.read(({ watch, tokens }) => {
      watch.look();
      return watch.grants.recall(key, () => tokens.findGrant(tokenHash));
    });
  }

  async listTokens(query: TokenQuery): Promise<TokenRecord[]> {
    return this.#connection.read(({ tokens }) => tokens.list(query));
  }

  async revokeToken(id: string, revokedAtMs: number): Promise<TokenRecord | undefined> {
    return this.#writer.write({ kind: 'revokeToken', id, revokedAtMs });
  }

  async check(): Promise<void> {
    this.#connection.read(({ tokens }) => tokens.check());
    if (this.#isUnfinished()) throw storageUnavailable(unfinishedCopy());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#writer.close();
    } finally {
      this.#connection.close();
    }
  }

  #isUnfinished(): boolean {
    const copies = this.#connection.read(({ database }) => database.prepare(unfinishedSql).all());
    return copies.length > 0;
  }
}
