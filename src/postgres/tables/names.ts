/**
 * Stores in PostgreSQL: finds them by name, and creates those that are missing. Every statement can be repeated.
 */
import { hash, randomInt } from 'node:crypto';
import { defect } from '../../problem.ts';
import { sql } from '../../sql/statement.ts';
import type { Servers } from '../servers.ts';

export const nameSql = {
  findStore: sql<readonly [store: number]>`
    SELECT store FROM plant_store.named_stores WHERE key = $1 AND name = $2`,
  addStoreName: sql`
    INSERT INTO plant_store.named_stores (key, name, store) VALUES ($1, $2, $3)
    ON CONFLICT DO NOTHING`,
  findStoreName: sql<readonly [name: string]>`SELECT name FROM plant_store.stores WHERE store = $1`,
  addStore: sql`
    INSERT INTO plant_store.stores (store, name) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
};

const keyBytes = 6;
const maxStoreNumber = 2 ** 48 - 1; // the largest range of randomInt, and of a key

/** A hash of the name. */
export function keyOf(storeName: string): number {
  return hash('sha256', storeName, 'buffer').readUIntBE(0, keyBytes);
}

export async function findStore(servers: Servers, name: string): Promise<number | undefined> {
  const server = await servers.ofStore(keyOf(name));
  const [row] = await server.read(nameSql.findStore, [keyOf(name), name]);
  return row?.[0];
}

/**
 * Returns the number of the store with this name. The row of the name is added first, and decides between two callers. If
 * the first one is interrupted, the next call adds the row of the store.
 */
export async function ensureStore(servers: Servers, name: string): Promise<number> {
  let store = await findStore(servers, name);
  if (store === undefined) {
    const number = await freeNumber(servers, keyOf(name));
    const server = await servers.ofStore(keyOf(name));
    await server.transact([nameSql.addStoreName, [keyOf(name), name, number]]);
    store = await findStore(servers, name);
  }
  if (store === undefined) throw defect(new Error(`no store is called ${name}`));
  let [row] = await servers.read(store, nameSql.findStoreName, [store]);
  if (row === undefined) {
    await (await servers.ofStore(store)).transact([nameSql.addStore, [store, name]]);
    [row] = await servers.read(store, nameSql.findStoreName, [store]);
  }
  // Two names got the same number concurrently: the second one must not get access to the store of the first.
  if (row?.[0] !== name) throw defect(new Error(`the store ${store} is not called ${name}`));
  return store;
}

/** The key of the name, so that both are on one server, or else a random one: a distributed engine has no global counter. */
async function freeNumber(servers: Servers, key: number): Promise<number> {
  for (let number = key; ; number = randomInt(1, maxStoreNumber)) {
    const taken = await servers.read(number, nameSql.findStoreName, [number]);
    if (taken.length === 0) return number;
  }
}
