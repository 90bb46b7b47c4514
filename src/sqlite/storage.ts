/**
 * The SQLite storage, on node:sqlite. Reads run on the event loop and end within one iteration of it, so that the
 * WAL can be restarted. Writes run on a writer thread.
 */
import type { Caller, Claims, Credential, Grant, Identity, ReadAccess } from '../access.ts';
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
import { isShort, listKind } from '../lists.ts';
import { revokerOf, type OwnToken } from '../own-tokens.ts';
import type { NewPlant, Plant } from '../plant.ts';
import type { PlantPage, PlantQuery, PlantStorage } from '../plant-storage.ts';
import { storageUnavailable } from '../problem.ts';
import type { Quotas } from '../quota.ts';
import { unfinishedCopy, type Refusal } from '../refusal.ts';
import type { Share, ShareEnds, SharesPage, SharesQuery, ShareStorage } from '../share-storage.ts';
import type { Storage } from '../storage.ts';
import type {
  FoundUser,
  NameQuery,
  StoreRecord,
  UserRecord,
  UserStorage,
} from '../user-storage.ts';
import { runInSlice } from '../time-slices.ts';
import { scan } from '../scan.ts';
import { Connection, type OpenConnection } from './connection.ts';
import type { OpenOptions } from './database.ts';
import type { OwnersProgress } from './owners.ts';
import { ReadBatcher } from './read-batcher.ts';
import { Writer } from './writer.ts';
import type { Write, WriteResults } from './writes.ts';

/** SQLite's page cache. A long list fills it, so it counts as memory of a list. */
const cacheKiB = 5_120;

/** How often to check that the file is still in place. A missing file must be detected within a second. */
const filePollMs = 500;

const unfinishedSql = `SELECT 1 FROM sqlite_schema WHERE name = 'unfinished_copy'`;

export interface SqliteOptions extends OpenOptions {
  quotas?: Quotas | undefined;
  /** Called when the file cannot be used or its schema is too new, and with undefined when it is usable again. */
  onFileFault?: ((fault: Refusal | undefined) => void) | undefined;
  /** Called once, if a sync fails: all later writes are refused. */
  onDiskFailure?: ((cause: unknown) => void) | undefined;
}

export class SqliteStorage implements Storage {
  readonly #connection: Connection;
  readonly #batcher: ReadBatcher;
  readonly #writer: Writer;
  readonly #onFileFault: SqliteOptions['onFileFault'];
  readonly #filePoll: NodeJS.Timeout;
  /** Why all requests fail; undefined if the file is usable. */
  #fileFault: Refusal | undefined;

  /** Opens the file. Throws Refusal if it cannot be used. */
  constructor(path: string, { quotas, onFileFault, onDiskFailure, ...options }: SqliteOptions) {
    this.#onFileFault = onFileFault;
    this.#connection = new Connection(path, cacheKiB);
    this.#batcher = new ReadBatcher(this.#connection);
    const fileId = this.#connection.open(options);
    if (this.#isUnfinished()) {
      this.#connection.close();
      throw unfinishedCopy();
    }
    this.#writer = new Writer(path, fileId, {
      quotas,
      onDiskFailure: onDiskFailure ?? (() => {}),
    });
    this.#filePoll = setInterval(() => this.#checkFile(), filePollMs).unref();
  }

  readonly plants: PlantStorage = {
    create: async (caller: Caller, plant: NewPlant): Promise<Plant> => {
      const creation = creationOf(caller, plant);
      return createdPlant(creation, await this.#write(creation));
    },
    find: async (caller: ReadAccess, id: number): Promise<Plant | undefined> => {
      return this.#read(({ plants }) => plants.find(caller, id));
    },
    list: async (caller: ReadAccess, query: PlantQuery): Promise<PlantPage> => {
      const kind = listKind(caller.read, query);
      if (kind === 'scan' || kind === 'owners') {
        const progress: OwnersProgress = { isSparse: false };
        const step = (range: Pick<PlantQuery, 'after' | 'limit'>) =>
          this.#read(({ plants }) => plants.scanStep(caller, { ...query, ...range }, progress));
        return scan(query, (range) => runInSlice(caller, async () => step(range)));
      }
      const read = () => this.#read(({ plants }) => plants.list(kind, caller, query));
      return isShort(caller.read, query) ? read() : runInSlice(caller, async () => read());
    },
    delete: async ({ store, write, identified }: Caller, id: number): Promise<boolean> => {
      return this.#write(['delete', store, write, id, identified]);
    },
    findOwner: async (store: number, id: number): Promise<string | undefined> => {
      return this.#read(({ plants }) => plants.findOwner(store, id));
    },
  };

  readonly identity: IdentityStorage = {
    /** Unlimited, because the lookups of one event loop iteration share a transaction. */
    maxLookups: Infinity,
    findNames: async (name: Pick<NewToken, 'store' | 'user'>): Promise<FoundNames> => {
      return this.#read(({ tokens }) => tokens.findNames(name));
    },
    createToken: async (token: NewToken): Promise<CreatedToken> => {
      return this.#write(['createToken', token]);
    },
    placeOf: (): object => {
      return this;
    },
    /** The batch refreshes the cache first. So reads for this caller include every write before this call. */
    identify: async (credential: Credential): Promise<Grant | undefined> => {
      const { tokenHash, claims } = credential;
      const { buffer, byteOffset, byteLength } = tokenHash;
      const key = Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
      this.#refuseFault();
      const find = () =>
        this.#batcher.read(({ freshness, tokens }) =>
          freshness.grants.getOrLoad(key, () => tokens.findGrant(credential)),
        );
      return claims === undefined ? find() : this.#findOrCreate(claims, find);
    },
    listTokens: async (query: TokenQuery): Promise<TokenRecord[]> => {
      return this.#read(({ tokens }) => tokens.list(query));
    },
    createOwnToken: async (
      { tokenHash, tokenId, caller }: Grant,
      token: OwnToken,
    ): Promise<void> => {
      const { store, user, identified } = caller;
      return this.#write([
        'createOwnToken',
        { tokenHash, tokenId, store, user, identified },
        token,
      ]);
    },
    revokeToken: async (
      id: string,
      revokedAtMs: number,
      by?: Grant,
    ): Promise<TokenRecord | undefined> => {
      return this.#write(['revokeToken', id, revokedAtMs, by && revokerOf(by)]);
    },
    recordUses: async (uses: readonly TokenUse[]): Promise<void> => {
      return this.#write(['recordUses', uses]);
    },
  };

  readonly shares: ShareStorage = {
    set: async (store: number, share: Share, sinceMs: number, by?: Caller): Promise<boolean> => {
      return this.#write(['share', store, share, sinceMs, by?.identified]);
    },
    end: async (store: number, ends: readonly ShareEnds[], by?: Caller): Promise<boolean> => {
      return this.#write(['unshare', store, ends, by?.identified]);
    },
    of: async (store: number, user: string, query?: SharesQuery): Promise<SharesPage> => {
      return this.#read(({ shares }) => shares.of(store, user, query));
    },
    list: async (store: number, after: ShareEnds | undefined, limit: number): Promise<Share[]> => {
      return this.#read(({ shares }) => shares.list(store, after, limit));
    },
  };

  readonly users: UserStorage = {
    listStores: async (query: NameQuery): Promise<StoreRecord[]> => {
      return this.#read(({ users }) => users.listStores(query));
    },
    list: async (store: string, query: NameQuery): Promise<UserRecord[]> => {
      return this.#read(({ users }) => users.listUsers(store, query));
    },
    find: async (store: string, user: string): Promise<FoundUser | undefined> => {
      return this.#read(({ users }) => users.find(store, user));
    },
    countPlants: async (user: Identity, limit: number): Promise<number> => {
      return this.#read(({ users }) => users.countPlants(user, limit));
    },
    endAccess: async (user: Identity, revokedAtMs: number, limit: number): Promise<number> => {
      return this.#write(['endAccess', user, revokedAtMs, limit]);
    },
    movePlants: async (from: Identity, to: number, limit: number): Promise<number> => {
      return this.#write(['movePlants', from, to, limit]);
    },
    remove: async (user: Identity, removedAtMs: number): Promise<boolean> => {
      return this.#write(['removeUser', user, removedAtMs]);
    },
  };

  async #findOrCreate(
    { storeName, userName, issuedAtMs }: Claims,
    find: () => Promise<Grant | undefined>,
  ): Promise<Grant | undefined> {
    const grant = await find();
    if (grant !== undefined) return grant;
    await this.#write(['createUser', storeName, userName, issuedAtMs]);
    return find();
  }

  async check(): Promise<void> {
    this.#checkFile();
    this.#read(({ tokens }) => tokens.check());
    if (this.#isUnfinished()) throw storageUnavailable(unfinishedCopy());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#filePoll);
    try {
      await this.#writer.close();
      await this.#batcher.close();
    } finally {
      this.#connection.close();
    }
  }

  #read<T>(work: (open: OpenConnection) => T): T {
    this.#refuseFault();
    return this.#connection.read(work);
  }

  async #write<W extends Write>(write: W): Promise<WriteResults[W[0]]> {
    this.#refuseFault(); // the thread also checks the file, at each commit
    return this.#writer.write(write);
  }

  #refuseFault(): void {
    if (this.#fileFault !== undefined) throw storageUnavailable(this.#fileFault);
  }

  #checkFile(): void {
    const before = this.#fileFault;
    this.#fileFault = this.#connection.findFault();
    if ((before === undefined) !== (this.#fileFault === undefined)) {
      this.#onFileFault?.(this.#fileFault);
    }
  }

  #isUnfinished(): boolean {
    const tables = this.#read(({ database }) => database.prepare(unfinishedSql).all());
    return tables.length > 0;
  }
}
