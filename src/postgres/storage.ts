/**
 * The storage on PostgreSQL and engines that speak like it. Nothing is kept here that others could
 * change unseen, so any number of processes serve one database.
 */
import type { Caller, Grant } from '../access.ts';
import { firstPageKey } from '../first-page.ts';
import { idMax } from '../ids.ts';
import type { NewPlant, Plant } from '../plant.ts';
import { storageUnavailable } from '../problem.ts';
import { Refusal, unfinishedCopy } from '../refusal.ts';
import type {
  NewToken,
  PlantPage,
  PlantQuery,
  Storage,
  TokenQuery,
  TokenRecord,
} from '../storage.ts';
import { isWalk, walk, type Step } from '../walk.ts';
import { addressOf } from './address.ts';
import { distribute, refuseUnsafeWorkers } from './citus.ts';
import { refuseUnsafe, whatItIs, type Connection, type Statement } from './connection.ts';
import { problemOf, refusalFor } from './errors.ts';
import { inTime } from './in-time.ts';
import { migrate } from './migrate.ts';
import {
  endOfStepSql,
  findSql,
  listOf,
  ownerFor,
  pageOf,
  plantOf,
  stepOf,
  stepSql,
} from './plants.ts';
import { Pool } from './pool.ts';
import { Tokens } from './tokens.ts';
import { Watch } from './watch.ts';
import { Writer } from './writer.ts';

interface OpenOptions {
  /** Whether a schema is made where there is none. */
  create: boolean;
  /** Whether tables that are there are spread over the machines of a cluster, however long it takes. */
  distribute?: boolean;
}

export class PostgresStorage implements Storage {
  readonly lookupsMax = 32;
  readonly #pool: Pool;
  readonly #watch: Watch;
  readonly #writer: Writer;
  readonly #tokens: Tokens;
  readonly #options: OpenOptions;
  #opening: Promise<void> | undefined;
  #isReady = false;

  /** Does not connect yet. Throws Refusal for an address that is none. */
  constructor(url: string, options: OpenOptions = { create: true }) {
    this.#options = options;
    this.#pool = new Pool(addressOf(url), () => this.#watch.forget());
    this.#watch = new Watch(this.#pool);
    this.#writer = new Writer(this.#pool, this.#watch);
    this.#tokens = new Tokens(this.#pool, this.#watch);
  }

  /**
   * Resolves where the database has the newest schema. Throws Refusal for what waiting does not mend,
   * and a Problem where the database does not answer yet; every method tries again then.
   */
  async open(): Promise<void> {
    const prepared = () => this.#pool.lend((connection) => prepare(connection, this.#options));
    this.#opening ??= prepared().catch((error: unknown) => {
      this.#opening = undefined;
      throw error instanceof Refusal ? error : (refusalFor(error) ?? problemOf(error));
    });
    await this.#opening;
  }

  async createPlant({ store, user }: Caller, plant: NewPlant): Promise<Plant> {
    await this.#whenReady();
    return this.#writer.create(store, user, plant);
  }

  async findPlant(caller: Caller, id: number): Promise<Plant | undefined> {
    return this.#answer(async () => {
      const [row] = await this.#pool.read(findSql, [caller.store, id, ownerFor(caller)]);
      return row && plantOf(row);
    });
  }

  async listPlants(caller: Caller, query: PlantQuery): Promise<PlantPage> {
    if (isWalk(caller, query)) {
      return walk(query, (range) => this.#answer(() => this.#step(caller, { ...query, ...range })));
    }
    const key = firstPageKey(caller, query);
    const { store } = caller;
    const kept = key === undefined ? undefined : this.#watch.page(store, key);
    if (kept !== undefined) return kept;
    return this.#answer(async () => {
      const mark = this.#watch.mark(store); // before the page is read, so it is no older
      const { statement, values } = listOf(caller, query);
      const page = pageOf(await this.#pool.read(statement, values), query);
      if (key !== undefined && mark !== undefined) this.#watch.keepPage(key, page, mark);
      return page;
    });
  }

  async #step(caller: Caller, query: PlantQuery): Promise<Step> {
    const { store, user } = caller;
    const { after, upTo = idMax, limit, tag } = query;
    const [end] = await this.#pool.read(endOfStepSql, [store, user, after, upTo]);
    const walkedTo = end === undefined ? undefined : Number(end[0]);
    const rows = await this.#pool.read(stepSql, [store, after, walkedTo ?? upTo, limit, user, tag]);
    return stepOf(rows, query, walkedTo);
  }

  async deletePlant(caller: Caller, id: number): Promise<boolean> {
    await this.#whenReady();
    return this.#writer.delete(caller.store, ownerFor(caller), id);
  }

  async createToken(token: NewToken): Promise<void> {
    await this.#whenReady();
    return this.#tokens.create(token);
  }

  async findGrant(tokenHash: Uint8Array): Promise<Grant | undefined> {
    return this.#answer(() => this.#tokens.findGrant(tokenHash));
  }

  async listTokens(query: TokenQuery): Promise<TokenRecord[]> {
    await this.#whenReady();
    return this.#tokens.list(query);
  }

  async revokeToken(id: string, revokedAtMs: number): Promise<TokenRecord | undefined> {
    await this.#whenReady();
    return this.#tokens.revoke(id, revokedAtMs);
  }

  async check(): Promise<void> {
    await this.#answer(async () => {
      const [copies = [], [server = []] = []] = await this.#pool.check([
        [unfinishedSql, []],
        [whatItIs, []],
      ]);
      if (copies.length > 0) throw unfinishedCopy();
      refuseUnsafe(server); // again: it may have been set otherwise meanwhile
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer.close();
    await this.#pool.close();
  }

  /** In time, or not: a request asks several things in a row, and some wait for what others have asked. */
  async #answer<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await inTime(this.#whenReady().then(read));
    } catch (error) {
      throw error instanceof Refusal ? storageUnavailable(error) : problemOf(error);
    }
  }

  async #whenReady(): Promise<void> {
    if (this.#isReady) return;
    try {
      await this.open();
      this.#isReady = true;
    } catch (error) {
      throw error instanceof Refusal ? storageUnavailable(error) : error;
    }
  }
}

async function prepare(connection: Connection, options: OpenOptions): Promise<void> {
  await migrate(connection, options);
  if (options.distribute === true) await distribute(connection);
  await refuseUnsafeWorkers(connection);
  const copies = await connection.query(unfinishedSql, []);
  if (copies.length > 0) throw unfinishedCopy();
}

const unfinishedSql: Statement = {
  name: 'unfinished_copy',
  text: 'SELECT 1 FROM plant_store.migrations WHERE copy_of IS NOT NULL',
};
