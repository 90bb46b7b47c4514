/**
 * The storage on PostgreSQL and engines that speak like it. Nothing is kept here that others could
 * change unseen, so any number of processes serve one database.
 */
import {
  reaches,
  soleOwner,
  type Credential,
  type Grant,
  type Identity,
  type ReadAccess,
  type WriteAccess,
} from '../access.ts';
import { createdPlant, creationOf } from '../changes.ts';
import type { NewToken, TokenQuery, TokenRecord } from '../identity-storage.ts';
import { idMax } from '../ids.ts';
import { firstPageKey, listKind, pageOf } from '../lists.ts';
import type { NewPlant, Plant } from '../plant.ts';
import type { PlantPage, PlantQuery } from '../plant-storage.ts';
import { storageUnavailable } from '../problem.ts';
import { decodeSchema } from '../migrations.ts';
import { Refusal, unfinishedCopy } from '../refusal.ts';
import type { Storage } from '../storage.ts';
import { scan, stepOf, type Step } from '../scan.ts';
import { parseAddress } from './address.ts';
import { distribute, refuseUnsafeWorkers } from './citus.ts';
import { prepared, refuseUnsafe, serverInfoSql, type Connection } from './connection.ts';
import {
  isStatementError,
  isConnectionLost,
  MigrationInProgress,
  problemOf,
  refusalFor,
  TimeoutError,
} from './errors.ts';
import { withTimeout } from './timeout.ts';
import {
  migrate,
  newestVersion,
  refuseUnusableSchema,
  schemaCacheMs,
  schemaSql,
} from './migrate.ts';
import { endOfStepSql, findSql, listSql, listValues, stepSql } from './plants.ts';
import { Pool, settled } from './pool.ts';
import { Tokens } from './tokens.ts';
import { Freshness } from './freshness.ts';
import { Writer } from './writer.ts';

interface OpenOptions {
  /** Whether a schema is created if there is none. */
  create: boolean;
  /** Whether tables that are there are spread over the machines of a cluster, however long it takes. */
  distribute?: boolean;
}

/** How long a request, or the start of the service, waits for a database that is not open yet. */
const openMsMax = 2_000;
/** How long a request waits to learn whether the schema can still be used. */
const schemaReadMsMax = 1_000;
/** After a migration has failed, how long before another attempt: each can lock tables or fill the disk. */
const migrateAgainMs = 60_000;

interface Opening {
  done: Promise<void>;
  sinceMs: number;
  isMigrating: boolean;
  /** Until when its result holds, be it a failure. */
  untilMs: number;
}

export class PostgresStorage implements Storage {
  readonly lookupsMax = 32;
  readonly #pool: Pool;
  readonly #freshness: Freshness;
  readonly #writer: Writer;
  readonly #tokens: Tokens;
  readonly #options: OpenOptions;
  readonly #stop = new AbortController();
  #opening: Opening | undefined;
  /** Until when the schema is taken for one that can be used. */
  #schemaUntilMs = 0;
  #schemaCheck: Promise<void> | undefined;

  /** Does not connect yet. Throws Refusal for an address that is none. */
  constructor(url: string, options: OpenOptions = { create: true }) {
    this.#options = options;
    this.#pool = new Pool(parseAddress(url), () => this.#freshness.clear());
    this.#freshness = new Freshness(this.#pool);
    this.#writer = new Writer(this.#pool, this.#freshness);
    this.#tokens = new Tokens(this.#pool, this.#freshness);
  }

  /**
   * Resolves when the database has a schema that can be used, however long the migration takes. Throws
   * Refusal for what waiting does not fix, and a Problem if the database does not answer yet. Every method
   * tries again then.
   */
  async open(): Promise<void> {
    await this.#open().done;
  }

  /** The same within 2 seconds. Throws a Problem if it takes longer; the migration continues. */
  async openSoon(): Promise<void> {
    const opening = this.#open();
    const leftMs = opening.sinceMs + openMsMax - performance.now();
    await withTimeout(opening.done, () => {}, Math.max(0, leftMs)).catch((error: unknown) => {
      const { isMigrating } = opening;
      if (error instanceof TimeoutError)
        throw storageUnavailable(isMigrating ? new MigrationInProgress() : error);
      throw isMigrating && isStatementError(error) ? storageUnavailable(error) : error;
    });
  }

  #open(): Opening {
    const nowMs = performance.now();
    if (this.#opening !== undefined && nowMs < this.#opening.untilMs) return this.#opening;
    const opening: Opening = {
      done: Promise.resolve(),
      sinceMs: nowMs,
      isMigrating: false,
      untilMs: Infinity,
    };
    const onWork = () => void (opening.isMigrating = true);
    opening.done = this.#prepare(onWork).catch((error: unknown) => {
      const isLasting = opening.isMigrating && !isConnectionLost(error);
      opening.untilMs = isLasting ? performance.now() + migrateAgainMs : 0;
      throw error instanceof Refusal ? error : (refusalFor(error) ?? problemOf(error));
    });
    this.#opening = opening;
    return opening;
  }

  async #prepare(onWork: () => void): Promise<void> {
    const startedMs = performance.now();
    await migrate(this.#pool, { ...this.#options, onWork, stop: this.#stop.signal });
    await this.#pool.withConnection((connection) => prepare(connection, this.#options));
    this.#schemaUntilMs = startedMs + schemaCacheMs; // over already if there was much to do
  }

  async createPlant(caller: Identity, plant: NewPlant): Promise<Plant> {
    await this.#whenReady();
    const creation = creationOf(caller, plant);
    return createdPlant(creation, await this.#writer.write(creation));
  }

  async findPlant({ store, read }: ReadAccess, id: number): Promise<Plant | undefined> {
    return this.#answer(async () => {
      const [row] = await this.#pool.read(findSql, [store, id]);
      if (row === undefined) return undefined;
      const [name, tag, owner] = row;
      return reaches(read, owner) ? { id, name, tag } : undefined;
    });
  }

  async listPlants(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    const kind = listKind(caller.read, query);
    if (kind === 'scan') {
      return scan(query, (range) => this.#answer(() => this.#step(caller, { ...query, ...range })));
    }
    const key = firstPageKey(caller, query);
    const { store } = caller;
    const cached = key === undefined ? undefined : this.#freshness.page(store, key);
    if (cached !== undefined) return cached;
    return this.#answer(async () => {
      const version = this.#freshness.version(store); // before the page is read
      const values = listValues(kind, caller, query);
      const page = pageOf(await this.#pool.read(listSql[kind], values), query);
      if (key !== undefined && version !== undefined) this.#freshness.setPage(key, page, version);
      return page;
    });
  }

  async #step({ store, read }: ReadAccess, query: PlantQuery): Promise<Step> {
    const { after, upTo = idMax, limit, tag } = query;
    const owner = soleOwner(read);
    const kind = owner === undefined ? 'owners' : 'owner';
    const whose = owner ?? read;
    const [end] = await this.#pool.read(endOfStepSql[kind], [store, whose, after, upTo]);
    const scannedTo = end?.[0] ?? undefined;
    const range = [store, after, scannedTo ?? upTo, limit, whose, tag];
    return stepOf(await this.#pool.read(stepSql[kind], range), query, scannedTo);
  }

  async deletePlant({ store, write }: WriteAccess, id: number): Promise<boolean> {
    await this.#whenReady();
    return this.#writer.write(['delete', store, write, id]);
  }

  async createToken(token: NewToken): Promise<void> {
    await this.#whenReady();
    return this.#tokens.create(token);
  }

  async identify(credential: Credential): Promise<Grant | undefined> {
    return this.#answer(() => this.#tokens.identify(credential));
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
      const [copies, [server = []]] = await this.#pool.check((connection) =>
        settled([connection.query(unfinishedSql, []), connection.query(serverInfoSql, [])]),
      );
      if (copies.length > 0) throw unfinishedCopy();
      refuseUnsafe(server); // again: it may have been set otherwise meanwhile
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#opening?.done.catch(() => {});
    await this.#writer.close();
    await this.#pool.close();
  }

  /** In time, or not: a request asks several things in a row, and some wait for what others have asked. */
  async #answer<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await withTimeout(this.#whenReady().then(read));
    } catch (error) {
      throw error instanceof Refusal ? storageUnavailable(error) : problemOf(error);
    }
  }

  async #whenReady(): Promise<void> {
    if (performance.now() < this.#schemaUntilMs) return;
    this.#schemaCheck ??= this.#checkSchema().finally(() => (this.#schemaCheck = undefined));
    try {
      await this.#schemaCheck;
    } catch (error) {
      throw error instanceof Refusal ? storageUnavailable(error) : problemOf(error);
    }
  }

  /** A newer program may bring up a schema that this one must not use; it waits until all have noticed. */
  async #checkSchema(): Promise<void> {
    await this.openSoon();
    if (performance.now() < this.#schemaUntilMs) return;
    const startedMs = performance.now();
    const read = this.#pool.check((connection) => connection.query(schemaSql, []));
    const [[number] = [0]] = await withTimeout(read, () => {}, schemaReadMsMax);
    const schema = decodeSchema(number);
    refuseUnusableSchema(schema);
    if (schema.version < newestVersion) {
      this.#opening = undefined; // an older backup was restored: the next request brings it up again
      throw new MigrationInProgress();
    }
    this.#schemaUntilMs = startedMs + schemaCacheMs;
  }
}

async function prepare(connection: Connection, options: OpenOptions): Promise<void> {
  if (options.distribute === true) await distribute(connection);
  await refuseUnsafeWorkers(connection);
  const copies = await connection.query(unfinishedSql, []);
  if (copies.length > 0) throw unfinishedCopy();
}

const unfinishedSql = prepared(
  'unfinished_copy',
  'SELECT 1 FROM plant_store.migrations WHERE copy_of IS NOT NULL',
);
