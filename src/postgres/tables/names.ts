/**
 * Stores and users in PostgreSQL: finds them by name, and creates those that are missing. Every statement can be
 * repeated: repeating `next_user` only skips a user number.
 */
import { hash, randomInt } from 'node:crypto';
import type { Identity, Role } from '../../access/access.ts';
import { defect } from '../../problem.ts';
import { sql } from '../pool/connection.ts';
import type { Servers } from '../servers.ts';
import type { BoundStatement } from '../pool/pool.ts';
import { newGrantsVersion } from './grants-version.ts';

interface NamedUser {
  user: number;
  role: Role;
  isRemoved: boolean;
}

export const nameSql = {
  findStore: sql<readonly [store: number]>`
    SELECT store FROM plant_store.named_stores WHERE key = $1 AND name = $2`,
  addStoreName: sql`
    INSERT INTO plant_store.named_stores (key, name, store) VALUES ($1, $2, $3)
    ON CONFLICT DO NOTHING`,
  findStoreName: sql<readonly [name: string]>`SELECT name FROM plant_store.stores WHERE store = $1`,
  addStore: sql`
    INSERT INTO plant_store.stores (store, name) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
  findUser: sql<readonly [id: number, role: Role, isRemoved: boolean]>`
    SELECT id, role, removed_at IS NOT NULL FROM plant_store.users
    WHERE store = $1 AND name = $2`,
  nextUser: sql<readonly [lastUser: number]>`
    UPDATE plant_store.stores SET last_user = last_user + 1, grants = $2 WHERE store = $1
    RETURNING last_user`,
  addUser: sql`
    INSERT INTO plant_store.users (store, id, name, role) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING`,
};

const keyBytes = 6;
const maxDraws = 10_000;
/** Store numbers are random, because a distributed engine has no global counter. */
const maxStoreNumber = 2 ** 48 - 1; // the largest range of randomInt

/** The key of a name is a hash of it, in the range of the numbers of stores. */
export function keyOf(storeName: string): number {
  return hash('sha256', storeName, 'buffer').readUIntBE(0, keyBytes);
}

export class Names {
  readonly #servers: Servers;

  constructor(servers: Servers) {
    this.#servers = servers;
  }

  async findStore(name: string): Promise<number | undefined> {
    const server = await this.#servers.ofStore(keyOf(name));
    const [row] = await server.read(nameSql.findStore, [keyOf(name), name]);
    return row?.[0];
  }

  async findUser(store: number, name: string): Promise<NamedUser | undefined> {
    const [row] = await this.#servers.read(store, nameSql.findUser, [store, name]);
    if (row === undefined) return undefined;
    const [user, role, isRemoved] = row;
    return { user, role, isRemoved };
  }

  /** `role` is that of a new user. */
  async findOrCreateUser(storeName: string, name: string, role: Role): Promise<Identity> {
    const found = await this.findStore(storeName);
    const existing = found === undefined ? undefined : await this.findUser(found, name);
    if (found !== undefined && existing !== undefined) return { store: found, user: existing.user };
    // Even if the store has a name: the request that added it may not have added its row yet.
    const store = await this.#findOrCreateStore(storeName);
    return { store, user: await this.#createUser(store, name, role) };
  }

  /**
   * Returns the number of the store with this name. The row of the name is added first, and decides between two
   * callers. If the first one is interrupted, the next call adds the row of the store.
   */
  async #findOrCreateStore(name: string): Promise<number> {
    let store = await this.findStore(name);
    if (store === undefined) {
      const drawn = await this.#drawStoreNumber(keyOf(name));
      const server = await this.#servers.ofStore(keyOf(name));
      await server.transact([nameSql.addStoreName, [keyOf(name), name, drawn]]);
      store = await this.findStore(name);
    }
    if (store === undefined) throw defect(new Error(`no store is called ${name}`));
    await (await this.#servers.ofStore(store)).transact([nameSql.addStore, [store, name]]);
    const [row] = await this.#servers.read(store, nameSql.findStoreName, [store]);
    // Two callers drew the same number concurrently: the second one must not get access to the store of the first.
    if (row?.[0] !== name) throw defect(new Error(`the store ${store} is not called ${name}`));
    return store;
  }

  /** A number in the same shard as the key of the name, unless that shard is too small to find one. */
  async #drawStoreNumber(key: number): Promise<number> {
    for (let attempt = 1; ; attempt++) {
      const drawn = randomInt(1, maxStoreNumber);
      if (attempt < maxDraws && !this.#servers.areTogether(drawn, key)) continue;
      const taken = await this.#servers.read(drawn, nameSql.findStoreName, [drawn]);
      if (taken.length === 0) return drawn;
    }
  }

  async #createUser(store: number, name: string, role: Role): Promise<number> {
    const server = await this.#servers.ofStore(store);
    const number: BoundStatement = [nameSql.nextUser, [store, newGrantsVersion()]];
    await server.transactInTwo([number], ([rows]) => [
      [nameSql.addUser, [store, rows?.[0]?.[0], name, role]],
    ]);
    const added = await this.findUser(store, name); // another request may have added it first
    if (added === undefined) throw defect(new Error(`no user is called ${name}`));
    return added.user;
  }
}
