/**
 * The storage on PostgreSQL and compatible engines. Cached grants are checked against the database before use,
 * so any number of processes can serve one database.
 */
import type { ChangeLog } from '../log/change-log.ts';
import type { IdentityStorage } from '../access/identity-storage.ts';
import type { ShareStorage } from '../access/share-storage.ts';
import type { Storage, WriteSettings } from '../storage.ts';
import type { UserStorage } from '../access/user-storage.ts';
import type { WebhookStorage } from '../webhooks/webhook.ts';
import { plantWrites } from '../plants/changes.ts';
import { maxId } from '../plants/ids.ts';
import type { PlantStorage } from '../plants/plant-storage.ts';
import { countPlants } from '../plants/scans.ts';
import { storageUnavailable } from '../problem.ts';
import { parseAddress } from './pool/address.ts';
import { sql } from '../sql/statement.ts';
import { openLog } from '../sql/log.ts';
import { openShares } from '../sql/shares.ts';
import { openTokens } from '../sql/tokens.ts';
import { openUsers } from '../sql/users.ts';
import { openWebhooks } from '../sql/webhooks.ts';
import { openEngine, type PostgresEngine } from './engine.ts';
import { readFigures } from './figures.ts';
import { Servers, type ServersOptions } from './servers.ts';
import { findPlant, readPage, scanReader } from './tables/plants.ts';
import { openGrants } from './tables/grants.ts';

interface OpenOptions extends Omit<ServersOptions, 'onFault'>, WriteSettings {
  onServerFault?: ServersOptions['onFault'];
}

/** As long as a name and a tag can be, but too short to be stored elsewhere. */
const largeText = `repeat('x', 1200)`;

const checkSql = {
  write: sql`UPDATE plant_store.stores SET position = position WHERE store = $1`,
  // Rows of which a table has no free place if it cannot grow, as an update of the row above always has one.
  addPlant: sql`
    INSERT INTO plant_store.plants (store, id, owner, tag, name)
    VALUES ($1, ${String(maxId)}, 0, '', ${largeText}) ON CONFLICT (store, id) DO NOTHING`,
  addChange: sql`
    INSERT INTO plant_store.changes (store, position, event, at, name, is_restorable)
    VALUES ($1, -1, 0, 0, ${largeText}, 0)`,
  privileges: sql`
    SELECT bool_and(
      has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE')
      AND has_table_privilege(oid, 'DELETE'))
    FROM pg_class WHERE relnamespace = 'plant_store'::regnamespace AND relkind = 'r'`,
};

const missingPrivilege = 'the user lacks a privilege on a table: INSERT, UPDATE or DELETE';

export class PostgresStorage implements Storage {
  readonly #servers: Servers;
  readonly #engine: PostgresEngine;
  readonly plants: PlantStorage;
  readonly identity: IdentityStorage;
  readonly shares: ShareStorage;
  readonly users: UserStorage;
  readonly log: ChangeLog;
  readonly webhooks: WebhookStorage;
  readonly figures = () => readFigures(this.#servers);

  /** Does not connect yet. Throws Refusal if the address is invalid. */
  constructor(
    url: string,
    { quotas, keepChangesMs, onServerFault, ...options }: OpenOptions = { create: true },
  ) {
    this.#servers = new Servers(parseAddress(url), { ...options, onFault: onServerFault });
    const engine = openEngine(this.#servers, { quotas, keepChangesMs });
    this.#engine = engine;
    this.identity = { ...openTokens(engine), identify: openGrants(this.#servers, engine) };
    this.shares = openShares(engine);
    this.users = openUsers(engine);
    this.plants = {
      ...plantWrites((change) => engine.change(change)),
      find: (...args) => findPlant(this.#servers, ...args),
      list: (...args) => readPage(this.#servers, this.users, ...args),
      count: (caller, query) => countPlants(caller, query, scanReader(this.#servers, caller)),
    };
    this.log = openLog(engine, keepChangesMs);
    this.webhooks = openWebhooks(engine);
  }

  async open(): Promise<void> {
    return this.#servers.readiness.open();
  }

  async openWithTimeout(): Promise<void> {
    return this.#servers.readiness.openWithTimeout();
  }

  async check(): Promise<void> {
    return this.#servers.readiness.check();
  }

  async checkWrites(store: number, needsSpace: boolean): Promise<void> {
    const server = await this.#servers.ofStore(store);
    if (needsSpace) {
      await server.rehearse([checkSql.addPlant, [store]], [checkSql.addChange, [store]]);
    }
    const [, [[hasPrivileges] = []] = []] = await server.transact(
      [checkSql.write, [store]],
      [checkSql.privileges, []],
    );
    if (hasPrivileges !== true) throw storageUnavailable(new Error(missingPrivilege));
  }

  get hasRival(): boolean {
    return this.#servers.hasRival;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#servers.readiness.close();
    await this.#engine.close();
    await this.#servers.close();
  }
}
