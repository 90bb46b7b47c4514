/**
 * The storage on PostgreSQL and compatible engines. Cached values are checked against the database before use,
 * so any number of processes can serve one database.
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
import type {
  FoundNames,
  NewToken,
  TokenQuery,
  TokenRecord,
  TokenUse,
} from '../identity-storage.ts';
import { maxId } from '../ids.ts';
import { firstPageKey, listKind, pageOf } from '../lists.ts';
import type { OwnToken } from '../own-tokens.ts';
import type { NewPlant, Plant } from '../plant.ts';
import { Probe } from '../probe.ts';
import type { PlantPage, PlantQuery } from '../plant-storage.ts';
import { storageUnavailable } from '../problem.ts';
import { decodeSchema } from '../migrations.ts';
import type { Quotas } from '../quota.ts';
import { Refusal, unfinishedCopy } from '../refusal.ts';
import type { Share, ShareEnds, SharesOfUser } from '../share-storage.ts';
import type { Storage } from '../storage.ts';
import type { FoundUser, NameQuery, StoreRecord, UserRecord } from '../user-storage.ts';
import { scan, stepOf, type ScanStep } from '../scan.ts';
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
import {
  findOwnerSql,
  findSql,
  listSql,
  listValues,
  maxMergedPlants,
  mergeSql,
  ownedSql,
  scanStepEndSql,
  scanStepSql,
} from './plants.ts';
import { Pool, settled } from './pool.ts';
import { Shares } from './shares.ts';
import { OwnTokens } from './own-tokens.ts';
import { Tokens } from './tokens.ts';
import { Users } from './users.ts';
import { Freshness } from './freshness.ts';
import { Writer } from './writer.ts';

interface OpenOptions {
  /** Whether to create a schema if there is none. */
  create: boolean;
  /** Whether to distribute existing tables over the nodes of a cluster, however long it takes. */
  distribute?: boolean;
  quotas?: Quotas | undefined;
}

/** How long a request, or the start of the service, waits for the database to open. */
const openTimeoutMs = 2_000;
/** How long a request waits for a check of the schema. */
const schemaCheckTimeoutMs = 1_000;
/** A failed migration is retried after this time, because each attempt can lock tables or fill the disk. */
const migrationRetryMs = 60_000;

interface Opening {
  done: Promise<void>;
  sinceMs: number;
  isMigrating: boolean;
  /** When its result expires, even if it is a failure. */
  untilMs: number;
}

export class PostgresStorage implements Storage {
  readonly maxLookups = 32;
  readonly #pool: Pool;
  readonly #freshness: Freshness;
  readonly #writer: Writer;
  readonly #tokens: Tokens;
  readonly #ownTokens: OwnTokens;
  readonly #users: Users;
  readonly #shares: Shares;
  readonly #options: OpenOptions;
  readonly #stop = new AbortController();
  #opening: Opening | undefined;
  /** When the next check of the schema is due. */
  #schemaUntilMs = 0;
  #schemaCheck: Promise<void> | undefined;

  /** Does not connect yet. Throws Refusal if the address is invalid. */
  constructor(url: string, options: OpenOptions = { create: true }) {
    this.#options = options;
    this.#pool = new Pool(parseAddress(url), () => this.#freshness.clear());
    this.#freshness = new Freshness(this.#pool);
    this.#writer = new Writer(this.#pool, this.#freshness, options.quotas);
    this.#tokens = new Tokens(this.#pool, this.#freshness);
    this.#ownTokens = new OwnTokens(this.#pool);
    this.#users = new Users(this.#pool, this.#freshness, this.#tokens);
    this.#shares = new Shares(this.#pool);
  }

  /**
   * Resolves when the database has a schema that can be used, however long a migration takes. Throws Refusal if
   * waiting does not help, and a Problem if the database does not respond. The next call of a method retries.
   */
  async open(): Promise<void> {
    await this.#open().done;
  }

  /** The same, but throws a Problem after 2 seconds. A migration continues in the background. */
  async openWithTimeout(): Promise<void> {
    const opening = this.#open();
    const leftMs = opening.sinceMs + openTimeoutMs - performance.now();
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
    const onMigrate = () => void (opening.isMigrating = true);
    opening.done = this.#migrateAndCheck(onMigrate).catch((error: unknown) => {
      const isMigrationFailure = opening.isMigrating && !isConnectionLost(error);
      opening.untilMs = isMigrationFailure ? performance.now() + migrationRetryMs : 0;
      throw error instanceof Refusal ? error : (refusalFor(error) ?? problemOf(error));
    });
    this.#opening = opening;
    return opening;
  }

  async #migrateAndCheck(onMigrate: () => void): Promise<void> {
    const startedMs = performance.now();
    await migrate(this.#pool, { ...this.#options, onMigrate, stop: this.#stop.signal });
    await this.#pool.withConnection((connection) => checkDatabase(connection, this.#options));
    this.#schemaUntilMs = startedMs + schemaCacheMs; // already past if a migration took long
  }

  async createPlant(caller: Identity, plant: NewPlant): Promise<Plant> {
    await this.#whenReady();
    const creation = creationOf(caller, plant);
    return createdPlant(creation, await this.#writer.write(creation));
  }

  async findPlant({ store, read }: ReadAccess, id: number): Promise<Plant | undefined> {
    return this.#read(async () => {
      const [row] = await this.#pool.read(findSql, [store, id]);
      if (row === undefined) return undefined;
      const [name, tag, owner] = row;
      return reaches(read, owner) ? { id, name, tag } : undefined;
    });
  }

  async listPlants(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    const kind = listKind(caller.read, query);
    if (kind === 'scan') {
      return scan(query, (range) =>
        this.#read(() => this.#scanStep(caller, { ...query, ...range })),
      );
    }
    const key = firstPageKey(caller, query);
    const { store } = caller;
    const cached = key === undefined ? undefined : this.#freshness.getPage(store, key);
    if (cached !== undefined) return cached;
    return this.#read(async () => {
      const version = this.#freshness.getVersion(store); // before the page is read
      const page =
        kind === 'owners'
          ? await this.#listOwners(caller, query)
          : pageOf(await this.#pool.read(listSql[kind], listValues(kind, caller, query)), query);
      if (key !== undefined && version !== undefined) this.#freshness.setPage(key, page, version);
      return page;
    });
  }

  async #listOwners({ store, read }: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    const { upTo = maxId } = query;
    // Enough if the owners have about as many plants. If one of them has most, the next steps read more of each.
    let plantsEach = 8 + Math.ceil((2 * Math.min(query.limit, maxMergedPlants)) / read.length);
    return scan(query, async ({ after, limit }) => {
      const step = { ...query, limit };
      const probe = new Probe(read, { after, limit });
      while (probe.limit > 0 && probe.after !== undefined)
        probe.add(await this.#pool.read(ownedSql, [store, probe.after, upTo, probe.limit]));
      const wanted = Math.min(probe.missing, maxMergedPlants);
      if (wanted === 0) return stepOf(probe.found, step, undefined);
      const values = [store, probe.after, upTo, wanted, read, Math.min(plantsEach, wanted)];
      const rows = await this.#pool.read(mergeSql, values);
      const completeTo = rows[0]?.[3] ?? upTo;
      const merged = rows.filter(([id]) => id <= completeTo);
      if (merged.length < wanted / 2) plantsEach *= 2;
      const isEnd = merged.length < wanted && completeTo === upTo;
      const mergedTo = isEnd ? undefined : merged.at(-1)?.[0];
      return stepOf([...probe.found, ...merged], step, mergedTo);
    });
  }

  async #scanStep({ store, read }: ReadAccess, query: PlantQuery): Promise<ScanStep> {
    const { after, upTo = maxId, limit, tag } = query;
    const owner = soleOwner(read);
    const kind = owner === undefined ? 'owners' : 'owner';
    const owners = owner ?? read;
    const [end] = await this.#pool.read(scanStepEndSql[kind], [store, owners, after, upTo]);
    const scannedTo = end?.[0] ?? undefined;
    const range = [store, after, scannedTo ?? upTo, limit, owners, tag];
    return stepOf(await this.#pool.read(scanStepSql[kind], range), query, scannedTo);
  }

  async deletePlant({ store, write }: WriteAccess, id: number): Promise<boolean> {
    await this.#whenReady();
    if (write === 'all' || write.length === 1) {
      return this.#writer.write(['delete', store, write, id]);
    }
    // A group of changes would compare each plant with every owner in reach, so the owner is looked up first.
    const findOwner = async () => (await this.#pool.read(findSql, [store, id]))[0]?.[2];
    for (let owner = await findOwner(); owner !== undefined && reaches(write, owner);) {
      if (await this.#writer.write(['delete', store, [owner], id])) return true;
      const current = await findOwner();
      if (current === owner) return false; // deleted and created again
      owner = current;
    }
    return false;
  }

  async findOwner(store: number, id: number): Promise<string | undefined> {
    return this.#read(async () => (await this.#pool.read(findOwnerSql, [store, id]))[0]?.[0]);
  }

  async findNames(name: Pick<NewToken, 'store' | 'user'>): Promise<FoundNames> {
    await this.#whenReady();
    return this.#tokens.findNames(name);
  }

  async createToken(token: NewToken): Promise<void> {
    await this.#whenReady();
    return this.#tokens.create(token);
  }

  async identify(credential: Credential): Promise<Grant | undefined> {
    return this.#read(() => this.#tokens.identify(credential));
  }

  async listTokens(query: TokenQuery): Promise<TokenRecord[]> {
    await this.#whenReady();
    return this.#tokens.list(query);
  }

  async createOwnToken(by: Grant, token: OwnToken): Promise<boolean> {
    await this.#whenReady();
    return this.#ownTokens.create(by, token);
  }

  async revokeToken(
    id: string,
    revokedAtMs: number,
    owner?: Identity,
  ): Promise<TokenRecord | undefined> {
    await this.#whenReady();
    return this.#tokens.revoke(id, revokedAtMs, owner);
  }

  async recordUses(uses: readonly TokenUse[]): Promise<void> {
    await this.#whenReady();
    return this.#ownTokens.recordUses(uses);
  }

  async listStores(query: NameQuery): Promise<StoreRecord[]> {
    await this.#whenReady();
    return this.#users.listStores(query);
  }

  async listUsers(store: string, query: NameQuery): Promise<UserRecord[]> {
    await this.#whenReady();
    return this.#users.listUsers(store, query);
  }

  async findUser(store: string, user: string): Promise<FoundUser | undefined> {
    await this.#whenReady();
    return this.#users.find(store, user);
  }

  async countPlants(user: Identity, limit: number): Promise<number> {
    await this.#whenReady();
    return this.#users.countPlants(user, limit);
  }

  async endAccess(user: Identity, revokedAtMs: number, limit: number): Promise<number> {
    await this.#whenReady();
    return this.#users.endAccess(user, revokedAtMs, limit);
  }

  async movePlants(from: Identity, to: number, limit: number): Promise<number> {
    await this.#whenReady();
    return this.#users.movePlants(from, to, limit);
  }

  async removeUser(user: Identity, removedAtMs: number): Promise<boolean> {
    await this.#whenReady();
    return this.#users.remove(user, removedAtMs);
  }

  async share(store: number, share: Share, sinceMs: number): Promise<boolean> {
    await this.#whenReady();
    return this.#shares.set(store, share, sinceMs);
  }

  async unshare(store: number, ends: readonly ShareEnds[]): Promise<boolean> {
    await this.#whenReady();
    return this.#shares.end(store, ends);
  }

  async sharesOf(store: number, user: string): Promise<SharesOfUser> {
    return this.#read(() => this.#shares.of(store, user));
  }

  async listShares(store: number, after: ShareEnds | undefined, limit: number): Promise<Share[]> {
    return this.#read(() => this.#shares.list(store, after, limit));
  }

  async check(): Promise<void> {
    await this.#read(async () => {
      const [copies, [server = []]] = await this.#pool.check((connection) =>
        settled([connection.query(unfinishedSql, []), connection.query(serverInfoSql, [])]),
      );
      if (copies.length > 0) throw unfinishedCopy();
      refuseUnsafe(server); // the settings can have changed
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#opening?.done.catch(() => {});
    await this.#writer.close();
    await this.#pool.close();
  }

  /** Limits the time of all statements of a read together, including queries that others have started. */
  async #read<T>(read: () => Promise<T>): Promise<T> {
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

  /** A newer program announces a migration that this one must not use, and waits until every process has checked. */
  async #checkSchema(): Promise<void> {
    await this.openWithTimeout();
    if (performance.now() < this.#schemaUntilMs) return;
    const startedMs = performance.now();
    const read = this.#pool.check((connection) => connection.query(schemaSql, []));
    const [[number] = [0]] = await withTimeout(read, () => {}, schemaCheckTimeoutMs);
    const schema = decodeSchema(number);
    refuseUnusableSchema(schema);
    if (schema.version < newestVersion) {
      this.#opening = undefined; // an older backup was restored: the next request migrates it
      throw new MigrationInProgress();
    }
    this.#schemaUntilMs = startedMs + schemaCacheMs;
  }
}

async function checkDatabase(connection: Connection, options: OpenOptions): Promise<void> {
  if (options.distribute === true) await distribute(connection);
  await refuseUnsafeWorkers(connection);
  const copies = await connection.query(unfinishedSql, []);
  if (copies.length > 0) throw unfinishedCopy();
}

const unfinishedSql = prepared(
  'unfinished_copy',
  'SELECT 1 FROM plant_store.migrations WHERE copy_of IS NOT NULL',
);
