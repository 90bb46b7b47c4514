/**
 * The storage on PostgreSQL and compatible engines. Cached grants are checked against the database before use,
 * so any number of processes can serve one database.
 */
import {
  type Caller,
  type Credential,
  type Grant,
  type Identity,
  type ReadAccess,
} from '../access.ts';
import { createdPlant, creationOf } from '../changes.ts';
import type {
  CreatedToken,
  FoundNames,
  IdentityStorage,
  NewToken,
  TokenQuery,
  TokenRecord,
  TokenUse,
} from '../identity-storage.ts';
import { revokerOf, type OwnToken } from '../own-tokens.ts';
import type { PlantPage, PlantQuery, PlantStorage } from '../plant-storage.ts';
import type { NewPlant, Plant } from '../plant.ts';
import type { Quotas } from '../quota.ts';
import type { Share, ShareEnds, SharesPage, SharesQuery, ShareStorage } from '../share-storage.ts';
import type { Storage } from '../storage.ts';
import type {
  FoundUser,
  NameQuery,
  StoreRecord,
  UserRecord,
  UserStorage,
} from '../user-storage.ts';
import { parseAddress } from './address.ts';
import { Freshness } from './freshness.ts';
import { Grants } from './grants.ts';
import { Names } from './names.ts';
import { OwnTokens } from './own-tokens.ts';
import { findOwnerSql } from './plants.ts';
import { Cluster, type ClusterEvents } from './cluster.ts';
import type { Pool } from './pool.ts';
import { Readiness, type ReadinessOptions } from './readiness.ts';
import { Reader } from './reader.ts';
import { Shares } from './shares.ts';
import { Tokens } from './tokens.ts';
import { UnroutedTokens } from './unrouted-tokens.ts';
import { Users } from './users.ts';
import { Writer } from './writer.ts';

interface OpenOptions extends ReadinessOptions {
  quotas?: Quotas | undefined;
  /** A server is unavailable, or available again if `fault` is undefined. */
  onServerFault?: ClusterEvents['onFault'] | undefined;
}

export class PostgresStorage implements Storage {
  readonly #cluster: Cluster;
  readonly #freshness: Freshness;
  readonly #readiness: Readiness;
  readonly #reader: Reader;
  /** One for each server, so that one that does not respond delays no others. */
  readonly #writers = new WeakMap<Pool, Writer>(); // nodes can be removed
  readonly #quotas: Quotas | undefined;
  readonly #names: Names;
  readonly #grants: Grants;
  readonly #tokens: Tokens;
  readonly #ownTokens: OwnTokens;
  readonly #users: Users;
  readonly #shares: Shares;

  /** Does not connect yet. Throws Refusal if the address is invalid. */
  constructor(url: string, options: OpenOptions = { create: true }) {
    const { onServerFault = () => {} } = options;
    this.#cluster = new Cluster(parseAddress(url), {
      onLost: (server) => this.#freshness.clear((store) => this.#cluster.ofStore(store) === server),
      onFault: onServerFault,
    });
    this.#freshness = new Freshness(this.#cluster);
    this.#readiness = new Readiness(this.#cluster, options);
    this.#reader = new Reader(this.#cluster, this.#readiness);
    this.#quotas = options.quotas;
    const names = new Names(this.#cluster);
    const unrouted = new UnroutedTokens(this.#cluster);
    this.#grants = new Grants(this.#cluster, this.#freshness, names, unrouted);
    this.#tokens = new Tokens(this.#cluster, names, unrouted);
    this.#ownTokens = new OwnTokens(this.#cluster);
    this.#users = new Users(this.#cluster, names);
    this.#shares = new Shares(this.#cluster, names);
    this.#names = names;
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

  readonly plants: PlantStorage = {
    create: async (caller: Caller, plant: NewPlant): Promise<Plant> => {
      await this.#readyFor(caller.store);
      const creation = creationOf(caller, plant);
      return createdPlant(creation, await this.#writerOf(caller.store).write(creation));
    },
    find: (caller: ReadAccess, id: number): Promise<Plant | undefined> => {
      return this.#reader.find(caller, id);
    },
    list: (caller: ReadAccess, query: PlantQuery): Promise<PlantPage> => {
      return this.#reader.list(caller, query);
    },
    delete: async ({ store, write, identified }: Caller, id: number): Promise<boolean> => {
      await this.#readyFor(store);
      return this.#writerOf(store).write(['delete', store, write, id, identified]);
    },
    findOwner: async (store: number, id: number): Promise<string | undefined> => {
      const server = this.#cluster.ofStore(store);
      return this.#readiness.read(
        server,
        async () => (await this.#cluster.read(store, findOwnerSql, [store, id]))[0]?.[0],
      );
    },
  };

  readonly identity: IdentityStorage = {
    maxLookups: 32,
    findNames: async (name: Pick<NewToken, 'store' | 'user'>): Promise<FoundNames> => {
      await this.#readyForName(name.store);
      return this.#tokens.findNames(name);
    },
    createToken: async (token: NewToken): Promise<CreatedToken> => {
      await this.#readyForName(token.store);
      return this.#tokens.create(token);
    },
    placeOf: (credential: Credential): Pool => {
      return this.#grants.serverOf(credential);
    },
    identify: (
      credential: Credential,
      onCheck?: (cached: Grant) => void,
    ): Promise<Grant | undefined> => {
      const server = this.#grants.serverOf(credential);
      return this.#readiness.read(server, () => this.#grants.identify(credential, onCheck));
    },
    listTokens: async (query: TokenQuery): Promise<TokenRecord[]> => {
      const { store, owner } = query;
      await (owner === undefined ? this.#readyForName(store) : this.#readyFor(owner.store));
      return this.#tokens.list(query);
    },
    createOwnToken: async (by: Grant, token: OwnToken): Promise<void> => {
      await this.#readyFor(by.caller.store);
      return this.#ownTokens.create(by, token);
    },
    revokeToken: async (
      id: string,
      revokedAtMs: number,
      by?: Grant,
    ): Promise<TokenRecord | undefined> => {
      const revoker = by && revokerOf(by);
      await this.#readiness.whenReady(this.#tokens.serverOf(id, revoker));
      return this.#tokens.revoke(id, revokedAtMs, revoker);
    },
    recordUses: async (uses: readonly TokenUse[]): Promise<void> => {
      await this.#readiness.whenReady(this.#cluster.any);
      return this.#ownTokens.recordUses(uses);
    },
  };

  readonly shares: ShareStorage = {
    set: async (store: number, share: Share, sinceMs: number, by?: Caller): Promise<boolean> => {
      await this.#readyFor(store);
      return this.#shares.set(store, share, sinceMs, by);
    },
    end: async (store: number, ends: readonly ShareEnds[], by?: Caller): Promise<boolean> => {
      await this.#readyFor(store);
      return this.#shares.end(store, ends, by);
    },
    of: async (store: number, user: string, query?: SharesQuery): Promise<SharesPage> => {
      return this.#readiness.read(this.#cluster.ofStore(store), () =>
        this.#shares.of(store, user, query),
      );
    },
    list: async (store: number, after: ShareEnds | undefined, limit: number): Promise<Share[]> => {
      return this.#readiness.read(this.#cluster.ofStore(store), () =>
        this.#shares.list(store, after, limit),
      );
    },
  };

  readonly users: UserStorage = {
    listStores: async (query: NameQuery): Promise<StoreRecord[]> => {
      await this.#readiness.whenReady(this.#cluster.any);
      return this.#users.listStores(query);
    },
    list: async (store: string, query: NameQuery): Promise<UserRecord[]> => {
      await this.#readyForName(store);
      return this.#users.listUsers(store, query);
    },
    find: async (store: string, user: string): Promise<FoundUser | undefined> => {
      await this.#readyForName(store);
      return this.#users.find(store, user);
    },
    countPlants: async (user: Identity, limit: number): Promise<number> => {
      await this.#readyFor(user.store);
      return this.#users.countPlants(user, limit);
    },
    endAccess: async (user: Identity, revokedAtMs: number, limit: number): Promise<number> => {
      await this.#readyFor(user.store);
      return this.#users.endAccess(user, revokedAtMs, limit);
    },
    movePlants: async (from: Identity, to: number, limit: number): Promise<number> => {
      await this.#readyFor(from.store);
      return this.#users.movePlants(from, to, limit);
    },
    remove: async (user: Identity, removedAtMs: number): Promise<boolean> => {
      await this.#readyFor(user.store);
      return this.#users.remove(user, removedAtMs);
    },
  };

  async check(): Promise<void> {
    return this.#readiness.check();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#readiness.close();
    await Promise.all(this.#cluster.pools.map(async (pool) => this.#writers.get(pool)?.close()));
    await this.#cluster.close();
  }

  #writerOf(store: number): Writer {
    const server = this.#cluster.ofStore(store);
    const known = this.#writers.get(server);
    if (known !== undefined) return known;
    const writer = new Writer(server, {
      quotas: this.#quotas,
      canShare: () => this.#cluster.isDirect(server),
    });
    this.#writers.set(server, writer);
    return writer;
  }

  #readyFor(store: number): Promise<void> {
    return this.#readiness.whenReady(this.#cluster.ofStore(store));
  }

  /** Undefined stands for all stores. */
  #readyForName(store: string | undefined): Promise<void> {
    const { any } = this.#cluster;
    return this.#readiness.whenReady(store === undefined ? any : this.#names.serverOf(store));
  }
}
