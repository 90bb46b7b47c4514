/**
 * The storage on node:sqlite. Reads run here, each a statement of its own that is over before the
 * method returns, so that nothing holds the WAL open; writes go to a thread of their own.
 */
import { reachesWholeStore, type Caller, type Grant } from '../access.ts';
import type { NewPlant, Plant } from '../plant.ts';
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
import type { Write, WriteResults } from './writes.ts';

/** Plants of a first page that is kept. */
const firstPagePlantsMax = 100;

export class SqliteStorage implements Storage {
  readonly #connection: Connection;
  readonly #writer: Writer;

  /** Opens the file. Throws Refusal where it cannot be used. */
  constructor(path: string, options: OpenOptions) {
    this.#connection = new Connection(path);
    this.#connection.open(options);
    this.#writer = new Writer(path);
  }

  async createPlant({ store, user, role }: Caller, plant: NewPlant): Promise<Plant> {
    return this.#write({ kind: 'createPlant', caller: { store, user, role }, plant });
  }

  async findPlant(caller: Caller, id: number): Promise<Plant | undefined> {
    return this.#connection.read(({ plants }) => plants.find(caller, id));
  }

  async listPlants(caller: Caller, query: PlantQuery): Promise<PlantPage> {
    return this.#connection.read(({ firstPages, plants }) => {
      const read = () => plants.list(caller, query);
      return isFirstPage(query) ? firstPages.recall(firstPageKey(caller, query), read) : read();
    });
  }

  async deletePlant({ store, user, role }: Caller, id: number): Promise<boolean> {
    return this.#write({ kind: 'deletePlant', caller: { store, user, role }, id });
  }

  async createToken(token: NewToken): Promise<void> {
    return this.#write({ kind: 'createToken', token });
  }

  async findGrant(tokenHash: Uint8Array): Promise<Grant | undefined> {
    const key = Buffer.from(tokenHash).toString('latin1');
    return this.#connection.read(({ watch, grants, tokens }) => {
      watch.look();
      return grants.recall(key, () => tokens.findGrant(tokenHash));
    });
  }

  async listTokens(query: TokenQuery): Promise<TokenRecord[]> {
    return this.#connection.read(({ tokens }) => tokens.list(query));
  }

  async revokeToken(id: string, revokedAtMs: number): Promise<TokenRecord | undefined> {
    return this.#write({ kind: 'revokeToken', id, revokedAtMs });
  }

  async check(): Promise<void> {
    this.#connection.read(({ tokens }) => tokens.check());
  }

  async #write<Kind extends Write['kind']>(
    write: Extract<Write, { kind: Kind }>,
  ): Promise<WriteResults[Kind]> {
    try {
      return await this.#writer.write<Kind>(write);
    } finally {
      this.#connection.forget();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer.close();
    this.#connection.close();
  }
}

/** First pages are asked for again and again; a cursor is walked over once. */
function isFirstPage({ after, upTo, limit, tag }: PlantQuery): boolean {
  return after === 0 && upTo === undefined && tag === undefined && limit <= firstPagePlantsMax;
}

function firstPageKey(caller: Caller, { limit, fields }: PlantQuery): string {
  const owner = reachesWholeStore(caller) ? 'all' : caller.user;
  return `${caller.store} ${owner} ${limit} ${fields.join()}`;
}
