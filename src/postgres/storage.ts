/**
 * The storage on PostgreSQL and compatible engines. Cached values are checked against the database before use,
 * so any number of processes can serve one database.
 */
import {
  reaches,
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
import type { OwnToken } from '../own-tokens.ts';
import type { PlantPage, PlantQuery } from '../plant-storage.ts';
import type { NewPlant, Plant } from '../plant.ts';
import type { Quotas } from '../quota.ts';
import type { Share, ShareEnds, SharesOfUser } from '../share-storage.ts';
import type { Storage } from '../storage.ts';
import type { FoundUser, NameQuery, StoreRecord, UserRecord } from '../user-storage.ts';
import { parseAddress } from './address.ts';
import { Freshness } from './freshness.ts';
import { Grants } from './grants.ts';
import { Names } from './names.ts';
import { OwnTokens } from './own-tokens.ts';
import { findOwnerSql, findSql } from './plants.ts';
import { Pool } from './pool.ts';
import { Readiness, type ReadinessOptions } from './readiness.ts';
import { Reader } from './reader.ts';
import { Shares } from './shares.ts';
import { Tokens } from './tokens.ts';
import { Users } from './users.ts';
import { Writer } from './writer.ts';

interface OpenOptions extends ReadinessOptions {
  quotas?: Quotas | undefined;
}

export class PostgresStorage implements Storage {
  readonly maxLookups = 32;
  readonly #pool: Pool;
  readonly #freshness: Freshness;
  readonly #readiness: Readiness;
  readonly #reader: Reader;
  readonly #writer: Writer;
  readonly #grants: Grants;
  readonly #tokens: Tokens;
  readonly #ownTokens: OwnTokens;
  readonly #users: Users;
  readonly #shares: Shares;
  /** Does not connect yet. Throws Refusal if the address is invalid. */
  constructor(url: string, options: OpenOptions = { create: true }) {
    this.#pool = new Pool(parseAddress(url), () => this.#freshness.clear());
    this.#freshness = new Freshness(this.#pool);
    this.#readiness = new Readiness(this.#pool, options);
    this.#reader = new Reader(this.#pool, this.#freshness, (read) => this.#readiness.read(read));
    this.#writer = new Writer(this.#pool, this.#freshness, options.quotas);
    const names = new Names(this.#pool);
    this.#grants = new Grants(this.#pool, this.#freshness, names);
    this.#tokens = new Tokens(this.#pool, names, this.#grants);
    this.#ownTokens = new OwnTokens(this.#pool);
    this.#users = new Users(this.#pool, this.#freshness, names, this.#grants);
    this.#shares = new Shares(this.#pool, names);
  }

  /**
   * Resolves when the database has a schema that can be used, however long a migration takes. Throws Refusal if
   * waiting does not help, and a Problem if the database does not respond. The next call of a method retries.
   */
  async open(): Promise<void> {
    return this.#readiness.open();
  }

  /** The same, but throws a Problem after 2 seconds. A migration continues in the background. */
  async openWithTimeout(): Promise<void> {
    return this.#readiness.openWithTimeout();
  }

  async createPlant(caller: Identity, plant: NewPlant): Promise<Plant> {
    await this.#readiness.whenReady();
    const creation = creationOf(caller, plant);
    return createdPlant(creation, await this.#writer.write(creation));
  }

  findPlant(caller: ReadAccess, id: number): Promise<Plant | undefined> {
    return this.#reader.find(caller, id);
  }

  listPlants(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    return this.#reader.list(caller, query);
  }

  async deletePlant({ store, write }: WriteAccess, id: number): Promise<boolean> {
    await this.#readiness.whenReady();
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
    return this.#readiness.read(
      async () => (await this.#pool.read(findOwnerSql, [store, id]))[0]?.[0],
    );
  }

  async findNames(name: Pick<NewToken, 'store' | 'user'>): Promise<FoundNames> {
    await this.#readiness.whenReady();
    return this.#tokens.findNames(name);
  }

  async createToken(token: NewToken): Promise<void> {
    await this.#readiness.whenReady();
    return this.#tokens.create(token);
  }

  async identify(credential: Credential): Promise<Grant | undefined> {
    return this.#readiness.read(() => this.#grants.identify(credential));
  }

  async listTokens(query: TokenQuery): Promise<TokenRecord[]> {
    await this.#readiness.whenReady();
    return this.#tokens.list(query);
  }

  async createOwnToken(by: Grant, token: OwnToken): Promise<boolean> {
    await this.#readiness.whenReady();
    return this.#ownTokens.create(by, token);
  }

  async revokeToken(
    id: string,
    revokedAtMs: number,
    owner?: Identity,
  ): Promise<TokenRecord | undefined> {
    await this.#readiness.whenReady();
    return this.#tokens.revoke(id, revokedAtMs, owner);
  }

  async recordUses(uses: readonly TokenUse[]): Promise<void> {
    await this.#readiness.whenReady();
    return this.#ownTokens.recordUses(uses);
  }

  async listStores(query: NameQuery): Promise<StoreRecord[]> {
    await this.#readiness.whenReady();
    return this.#users.listStores(query);
  }

  async listUsers(store: string, query: NameQuery): Promise<UserRecord[]> {
    await this.#readiness.whenReady();
    return this.#users.listUsers(store, query);
  }

  async findUser(store: string, user: string): Promise<FoundUser | undefined> {
    await this.#readiness.whenReady();
    return this.#users.find(store, user);
  }

  async countPlants(user: Identity, limit: number): Promise<number> {
    await this.#readiness.whenReady();
    return this.#users.countPlants(user, limit);
  }

  async endAccess(user: Identity, revokedAtMs: number, limit: number): Promise<number> {
    await this.#readiness.whenReady();
    return this.#users.endAccess(user, revokedAtMs, limit);
  }

  async movePlants(from: Identity, to: number, limit: number): Promise<number> {
    await this.#readiness.whenReady();
    return this.#users.movePlants(from, to, limit);
  }

  async removeUser(user: Identity, removedAtMs: number): Promise<boolean> {
    await this.#readiness.whenReady();
    return this.#users.remove(user, removedAtMs);
  }

  async share(store: number, share: Share, sinceMs: number): Promise<boolean> {
    await this.#readiness.whenReady();
    return this.#shares.set(store, share, sinceMs);
  }

  async unshare(store: number, ends: readonly ShareEnds[]): Promise<boolean> {
    await this.#readiness.whenReady();
    return this.#shares.end(store, ends);
  }

  async sharesOf(store: number, user: string): Promise<SharesOfUser> {
    return this.#readiness.read(() => this.#shares.of(store, user));
  }

  async listShares(store: number, after: ShareEnds | undefined, limit: number): Promise<Share[]> {
    return this.#readiness.read(() => this.#shares.list(store, after, limit));
  }

  async check(): Promise<void> {
    return this.#readiness.check();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#readiness.close();
    await this.#writer.close();
    await this.#pool.close();
  }
}
