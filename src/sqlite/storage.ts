/**
 * The storage on node:sqlite. Reads run here and are over with the turn of the event loop, so that
 * nothing holds the WAL open; writes go to a thread of their own.
 */
import type { Credential, Grant, Identity, ReadAccess, WriteAccess } from '../access.ts';
import { createdPlant, creationOf } from '../changes.ts';
import type { NewToken, TokenQuery, TokenRecord } from '../identity-storage.ts';
import { firstPageKey, listKind } from '../lists.ts';
import type { NewPlant, Plant } from '../plant.ts';
import type { PlantPage, PlantQuery } from '../plant-storage.ts';
import { storageUnavailable } from '../problem.ts';
import { unfinishedCopy, type Refusal } from '../refusal.ts';
import type { Storage } from '../storage.ts';
import { runInSlice } from '../time-slices.ts';
import { scan } from '../scan.ts';
import { Connection, type Open } from './connection.ts';
import type { OpenOptions } from './database.ts';
import { ReadBatcher } from './read-batcher.ts';
import { Writer } from './writer.ts';
import type { Write, WriteResults } from './writes.ts';

/** A list of any length fills it, so it is part of what a list costs in memory. */
const cacheKiB = 5_120;

/** How often the file is looked at, so that one that is gone is noticed within a second. */
const fileCheckMs = 500;

const unfinishedSql = `SELECT 1 FROM sqlite_schema WHERE name = 'unfinished_copy'`;

export interface SqliteOptions extends OpenOptions {
  /** Told once if the file is no longer in its place, or not whole, and with undefined if it is again. */
  onFileFault?: ((fault: Refusal | undefined) => void) | undefined;
  /** Called once, if the disk fails a commit: from then on every write is refused. */
  onDiskFailure?: ((cause: unknown) => void) | undefined;
}

export class SqliteStorage implements Storage {
  /** Those of a turn are read together. */
  readonly lookupsMax = Infinity;
  readonly #connection: Connection;
  readonly #batcher: ReadBatcher;
  readonly #writer: Writer;
  readonly #onFileFault: SqliteOptions['onFileFault'];
  readonly #fileChecks: NodeJS.Timeout;
  /** While there is one, nothing is answered: what is open is no longer the database. */
  #fileFault: Refusal | undefined;

  /** Opens the file. Throws Refusal where it cannot be used. */
  constructor(path: string, { onFileFault, onDiskFailure, ...options }: SqliteOptions) {
    this.#onFileFault = onFileFault;
    this.#connection = new Connection(path, cacheKiB);
    this.#batcher = new ReadBatcher(this.#connection);
    const fileId = this.#connection.open(options);
    if (this.#isUnfinished()) {
      this.#connection.close();
      throw unfinishedCopy();
    }
    this.#writer = new Writer(path, fileId, {
      onCommit: () => this.#connection.changed(),
      onDiskFailure: onDiskFailure ?? (() => {}),
    });
    this.#fileChecks = setInterval(() => this.#checkFile(), fileCheckMs).unref();
  }

  async createPlant(caller: Identity, plant: NewPlant): Promise<Plant> {
    const creation = creationOf(caller, plant);
    return createdPlant(creation, await this.#write(creation));
  }

  async findPlant(caller: ReadAccess, id: number): Promise<Plant | undefined> {
    return this.#read(({ plants }) => plants.find(caller, id));
  }

  async listPlants(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    const kind = listKind(caller.read, query);
    if (kind === 'scan') {
      const step = (range: Pick<PlantQuery, 'after' | 'limit'>) =>
        this.#read(({ plants }) => plants.step(caller, { ...query, ...range }));
      return scan(query, (range) => runInSlice(async () => step(range)));
    }
    return this.#read(({ freshness, plants }) => {
      const read = () => plants.list(kind, caller, query);
      const key = firstPageKey(caller, query);
      return key === undefined ? read() : freshness.page(caller, key, read);
    });
  }

  async deletePlant({ store, write }: WriteAccess, id: number): Promise<boolean> {
    return this.#write(['delete', store, write, id]);
  }

  async createToken(token: NewToken): Promise<void> {
    return this.#write(['createToken', token]);
  }

  /** Its turn checks whether the file has changed: what is in memory holds for callers identified here. */
  async identify({ tokenHash }: Credential): Promise<Grant | undefined> {
    const { buffer, byteOffset, byteLength } = tokenHash;
    const key = Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
    this.#refuseFault();
    return this.#batcher.read(({ freshness, tokens }) =>
      freshness.grants.getOrLoad(key, () => tokens.findGrant(tokenHash)),
    );
  }

  async listTokens(query: TokenQuery): Promise<TokenRecord[]> {
    return this.#read(({ tokens }) => tokens.list(query));
  }

  async revokeToken(id: string, revokedAtMs: number): Promise<TokenRecord | undefined> {
    return this.#write(['revokeToken', id, revokedAtMs]);
  }

  async check(): Promise<void> {
    this.#checkFile();
    this.#read(({ tokens }) => tokens.check());
    if (this.#isUnfinished()) throw storageUnavailable(unfinishedCopy());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#fileChecks);
    try {
      await this.#writer.close();
      await this.#batcher.close();
    } finally {
      this.#connection.close();
    }
  }

  #read<T>(work: (open: Open) => T): T {
    this.#refuseFault();
    return this.#connection.read(work);
  }

  async #write<W extends Write>(write: W): Promise<WriteResults[W[0]]> {
    this.#refuseFault(); // the thread looks as well, at each commit
    return this.#writer.write(write);
  }

  #refuseFault(): void {
    if (this.#fileFault !== undefined) throw storageUnavailable(this.#fileFault);
  }

  #checkFile(): void {
    const before = this.#fileFault;
    this.#fileFault = this.#connection.fault();
    if ((before === undefined) !== (this.#fileFault === undefined)) {
      this.#onFileFault?.(this.#fileFault);
    }
  }

  #isUnfinished(): boolean {
    const copies = this.#read(({ database }) => database.prepare(unfinishedSql).all());
    return copies.length > 0;
  }
}
