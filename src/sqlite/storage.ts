/**
 * The SQLite storage, on node:sqlite. Reads run on the event loop and end within one iteration of it, so that the
 * WAL can be restarted. Writes run on a writer thread.
 */
import { userKey, type Credential, type Grant, type ReadAccess } from '../access/access.ts';
import {
  createdPlant,
  creationOf,
  deletionOf,
  restorationOf,
  updateOf,
} from '../plants/changes.ts';
import type { IdentityStorage } from '../access/identity-storage.ts';
import { binPageOf, type ChangeLog } from '../log/change-log.ts';
import { isRange, isShort, listPlants } from '../plants/lists.ts';
import type { PlantPage, PlantQuery, PlantStorage } from '../plants/plant-storage.ts';
import { storageUnavailable } from '../problem.ts';
import { unfinishedCopy } from '../refusal.ts';
import type { ShareStorage } from '../access/share-storage.ts';
import type { Storage } from '../storage.ts';
import { scan } from '../shared/scan.ts';
import { runInSlice } from '../shared/time-slices.ts';
import type { UserStorage } from '../access/user-storage.ts';
import { Connection, type ConnectionSettings, type OpenConnection } from './connection.ts';
import { failedSync } from './errors.ts';
import type { OpenOptions } from './file/open.ts';
import { isUnfinished } from './file/schema.ts';
import { ReadBatcher } from './read-batcher.ts';
import { call, type Call } from './tables/tables.ts';
import type { TokenStorage } from './tables/tokens.ts';
import { Writer } from './writer/writer.ts';

/** SQLite's page cache. A long list fills it, so it counts as memory of a list. */
const cacheKiB = 5_120;

/** How often to check the file and the writes. A missing file must be detected within a second. */
const pollMs = 500;

/** Parts of the storage, except for what each of them needs besides a table. */
interface Parts {
  plants: Pick<PlantStorage, 'find' | 'findOwner'>;
  tokens: TokenStorage;
  shares: ShareStorage;
  users: UserStorage;
  log: Omit<ChangeLog, 'history' | 'deleted'>;
}

interface SqliteOptions extends OpenOptions, Pick<ConnectionSettings, 'quotas' | 'keepChangesMs'> {
  /** Called when the storage cannot be used any more: the file is lost, or a sync has failed. */
  onFailure?: ((cause: unknown) => void) | undefined;
}

const isUnfinishedCopy = ({ database }: OpenConnection) => isUnfinished(database);

export class SqliteStorage implements Storage {
  readonly #connection: Connection;
  readonly #batcher: ReadBatcher;
  readonly #writer: Writer;
  readonly #poll: NodeJS.Timeout;

  /** Opens the file. Throws Refusal if it cannot be used. */
  constructor(
    path: string,
    { quotas, keepChangesMs, onFailure = () => {}, ...options }: SqliteOptions,
  ) {
    this.#connection = new Connection({ path, cacheKiB, keepChangesMs, onFileLost: onFailure });
    this.#batcher = new ReadBatcher(this.#connection);
    const { file } = this.#connection.open(options);
    if (this.#connection.read(isUnfinishedCopy)) {
      this.#connection.close();
      throw unfinishedCopy();
    }
    const settings = { path, fileId: file.id, quotas, keepChangesMs };
    this.#writer = new Writer(settings, (cause) => onFailure(failedSync(cause)));
    this.#poll = setInterval(() => {
      this.#connection.poll();
      this.#writer.rejectOverdue();
    }, pollMs).unref();
  }

  readonly plants: PlantStorage = {
    ...this.#part('plants', { find: 'read', findOwner: 'read' }),
    create: async (caller, plant, options) => {
      const creation = creationOf(caller, plant, options);
      return createdPlant(creation, await this.#writer.change(creation));
    },
    update: async (...args) => this.#writer.change(updateOf(...args)),
    delete: async (...args) => this.#writer.change(deletionOf(...args)),
    restore: async (...args) => this.#writer.change(restorationOf(...args)),
    list: (caller, query) => this.#list(caller, query),
  };

  readonly identity: IdentityStorage = {
    ...this.#part('tokens', {
      findNames: 'read',
      createToken: 'write',
      createOwnToken: 'write',
      listTokens: 'read',
      revokeToken: 'write',
      recordUses: 'write',
    }),
    /** Unlimited, because the lookups of one event loop iteration share a transaction. */
    maxLookups: Infinity,
    placeOf: () => this,
    identify: (credential) => this.#identify(credential),
  };

  readonly shares = this.#part('shares', { set: 'write', end: 'write', of: 'read', list: 'read' });

  readonly users = this.#part('users', {
    listStores: 'read',
    list: 'read',
    find: 'read',
    namesOf: 'read',
    countPlants: 'read',
    endAccess: 'write',
    movePlants: 'write',
    remove: 'write',
  });

  readonly log: ChangeLog = {
    ...this.#part('log', {
      list: 'read',
      removeOld: 'write',
      readClock: 'read',
      setClock: 'write',
    }),
    /** In one transaction: the plant and its history belong together. */
    history: (...args) => this.#batcher.read(({ log }) => log.history(...args)),
    deleted: async (caller, query) => {
      const found = await scan(query, (after, limit) =>
        runInSlice(userKey(caller), async () =>
          this.#connection.read(({ log }) => log.binStep(caller, after, limit)),
        ),
      );
      return binPageOf(found, query);
    },
  };

  /** A part of the storage: its table has the same methods. Reads run here, and writes on the writer thread. */
  #part<Name extends keyof Parts>(
    table: Name,
    kinds: Record<keyof Parts[Name], 'read' | 'write'>,
  ): Parts[Name] {
    const methods = Object.entries(kinds).map(([method, kind]) => [
      method,
      async (...args: readonly unknown[]) => {
        const callOfMethod = [table, method, ...args] as unknown as Call; // the caller has checked the arguments
        return kind === 'read'
          ? this.#connection.read((tables) => call(tables, callOfMethod))
          : this.#writer.write(callOfMethod);
      },
    ]);
    return Object.fromEntries(methods) as Parts[Name]; // the methods of the table return what the part promises
  }

  async #list(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    const page = ({ lists }: OpenConnection) => lists.page(caller, query);
    if (isShort(caller.read, query)) return this.#connection.read(page);
    const inSlice = <T>(read: (open: OpenConnection) => T) =>
      runInSlice(userKey(caller), async () => this.#connection.read(read));
    if (isRange(caller.read, query)) return inSlice(page);
    return listPlants(caller, query, this.users, (after, limit) =>
      inSlice(({ lists }) => lists.step(caller, after, limit)),
    );
  }

  /**
   * The batch first checks for writes of others, so reads for this caller include every write before this call. Not
   * async: most callers have a token, and need no other promise.
   */
  #identify(credential: Credential): Promise<Grant | undefined> {
    const find = () => this.#batcher.read(({ grants }) => grants.findCached(credential));
    const { claims } = credential;
    if (claims === undefined) return find();
    return find().then(async (grant) => {
      if (grant !== undefined) return grant;
      const { storeName, userName, issuedAtMs } = claims;
      await this.#writer.write(['tokens', 'createUser', storeName, userName, issuedAtMs]);
      return find();
    });
  }

  warmUp(): void {
    this.#writer.start();
  }

  async check(): Promise<void> {
    this.#connection.checkFile();
    if (await this.#batcher.read(isUnfinishedCopy)) throw storageUnavailable(unfinishedCopy());
  }

  async checkWrites(store: number): Promise<void> {
    await this.#writer.write(['stores', 'touch', store]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#writer.close();
      await this.#batcher.close();
    } finally {
      clearInterval(this.#poll);
      this.#connection.close();
    }
  }
}
