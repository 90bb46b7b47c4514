/**
 * The SQLite storage, on node:sqlite. Reads run on the event loop and end within one iteration of it, so that the
 * WAL can be restarted. Writes run on a writer thread.
 */
import { userKey, type Credential, type Grant, type ReadAccess } from '../access/access.ts';
import { plantWrites } from '../plants/changes.ts';
import type { IdentityStorage } from '../access/identity-storage.ts';
import type { ChangeLog } from '../log/change-log.ts';
import { isRange, isShort, listPlants } from '../plants/lists.ts';
import type { PlantPage, PlantQuery, PlantStorage } from '../plants/plant-storage.ts';
import { countPlants, type StepReader } from '../plants/scans.ts';
import { findUserGrant } from '../sql/grants.ts';
import { openLog } from '../sql/log.ts';
import { openShares } from '../sql/shares.ts';
import { openTokens } from '../sql/tokens.ts';
import { openUsers } from '../sql/users.ts';
import { openWebhooks } from '../sql/webhooks.ts';
import { sql } from '../sql/statement.ts';
import type { Engine } from '../sql/write.ts';
import type { ShareStorage } from '../access/share-storage.ts';
import type { UserStorage } from '../access/user-storage.ts';
import type { WebhookStorage } from '../webhooks/webhook.ts';
import { defect } from '../problem.ts';
import type { Storage } from '../storage.ts';
import { runInSlice } from '../shared/time-slices.ts';
import { Connection, type ConnectionSettings, type OpenConnection } from './connection.ts';
import { failedSync } from './errors.ts';
import { readFigures } from './figures.ts';
import type { OpenOptions } from './file/open.ts';
import { ReadBatcher } from './read-batcher.ts';
import { Writer } from './writer/writer.ts';

/** SQLite's page cache. A long list fills it, so it counts as memory of a list. */
const cacheKiB = 5_120;

/** How often to check the file and the writes. A missing file must be detected within a second. */
const pollMs = 500;

/** More pages than a create adds to the WAL. A write that changes nothing adds one. */
const pagesOfCreate = 16;

interface SqliteOptions extends OpenOptions, Pick<ConnectionSettings, 'quotas' | 'keepChangesMs'> {
  /** Called when the storage cannot be used any more: the file is lost, or a sync has failed. */
  onFailure?: ((cause: unknown) => void) | undefined;
}

export class SqliteStorage implements Storage {
  readonly #connection: Connection;
  readonly #batcher: ReadBatcher;
  readonly #writer: Writer;
  readonly #engine: Engine;
  readonly #poll: NodeJS.Timeout;

  /** Opens the file. Throws Refusal if it cannot be used. */
  constructor(
    path: string,
    { quotas, keepChangesMs, onFailure = () => {}, ...options }: SqliteOptions,
  ) {
    this.#connection = new Connection({ path, cacheKiB, keepChangesMs, onFailure });
    this.#batcher = new ReadBatcher(this.#connection);
    const { file } = this.#connection.open(options);
    const settings = { path, fileId: file.id, quotas, keepChangesMs };
    this.#writer = new Writer(settings, (cause) => onFailure(failedSync(cause)));
    this.#engine = openEngine(this.#connection, this.#writer);
    this.identity = {
      ...openTokens(this.#engine),
      identify: (credential, known) => this.#identify(credential, known),
    };
    this.shares = openShares(this.#engine);
    this.users = openUsers(this.#engine);
    this.log = openLog(this.#engine, keepChangesMs);
    this.webhooks = openWebhooks(this.#engine);
    this.figures = () => readFigures(path, this.#engine);
    this.#poll = setInterval(() => {
      this.#connection.checkFile();
      this.#writer.rejectOverdue();
    }, pollMs).unref();
  }

  readonly plants: PlantStorage = {
    ...plantWrites((change) => this.#writer.change(change)),
    find: async (caller, id) => this.#connection.read(({ plants }) => plants.find(caller, id)),
    list: (caller, query) => this.#list(caller, query),
    count: (caller, query) => countPlants(caller, query, this.#stepsOf(caller)),
  };

  readonly identity: IdentityStorage;
  readonly shares: ShareStorage;
  readonly users: UserStorage;
  readonly log: ChangeLog;
  readonly webhooks: WebhookStorage;
  readonly figures: Storage['figures'];

  async #list(caller: ReadAccess, query: PlantQuery): Promise<PlantPage> {
    const page = ({ lists }: OpenConnection) => lists.page(caller, query);
    if (isShort(caller.read, query)) return this.#connection.read(page);
    if (isRange(caller.read, query)) return this.#inSlice(caller, page);
    return listPlants(caller, query, this.users, this.#stepsOf(caller));
  }

  #stepsOf(caller: ReadAccess): StepReader {
    return (...range) => this.#inSlice(caller, ({ lists }) => lists.step(caller, ...range));
  }

  #inSlice<T>(caller: ReadAccess, read: (open: OpenConnection) => T): Promise<T> {
    return runInSlice(userKey(caller), async () => this.#connection.read(read));
  }

  /**
   * The batch first checks for writes of others, so reads for this caller include every write before this call. Not
   * async: most callers have a token, and need no other promise.
   */
  #identify(credential: Credential, known?: Grant): Promise<Grant | undefined> {
    const found = this.#batcher.read(({ grants }) => grants.current(credential, known));
    if (credential.claims === undefined) return found;
    return found.then((grant) => grant ?? findUserGrant(this.#engine, credential));
  }

  warmUp(): void {
    this.#writer.start();
  }

  async check(): Promise<void> {
    await this.#batcher.read(() => {});
  }

  async checkWrites(store: number, needsSpace: boolean): Promise<void> {
    // One can fit where a larger write did not.
    const writes = needsSpace ? pagesOfCreate : 1;
    for (let at = 0; at < writes; at++) await this.#writer.write(['touch', store]);
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

const findStoreSql = sql<readonly [store: number]>`SELECT store FROM stores WHERE name = $1`;

/** Runs the statements of `sql/`: reads on the event loop, and writes by name on the writer thread (tables/statements.ts). */
function openEngine(connection: Connection, writer: Writer): Engine {
  const read: Engine['read'] = async (_store, statement, values, turn) => {
    const step = () => connection.read(({ statements }) => statements.all(statement, values));
    return turn === undefined ? step() : runInSlice(turn, async () => step());
  };

  async function findStore(name: string): Promise<number | undefined> {
    const [row] = await read(undefined, findStoreSql, [name]);
    return row?.[0];
  }

  return {
    read,
    findStore,

    async ensureStore(name) {
      const known = await findStore(name);
      if (known !== undefined) return known;
      await writer.write(['add-store', name]);
      return (
        (await findStore(name)) ?? Promise.reject(defect(new Error(`no store is called ${name}`)))
      );
    },

    write: (...call) => writer.call(...call),
  };
}
