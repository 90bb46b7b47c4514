/**
 * Many stores in one PostgreSQL database, or in a cluster.
 */
import { PostgresStorage } from '../src/postgres/storage.ts';
import { addToken } from '../test/support/app.ts';
import { query } from '../test/support/postgres.ts';

export interface UserToken {
  store: string;
  user: string;
  token: string;
}

const tokensAtOnce = 8;

/** Creates the stores, each with `usersEach` users. Each user has a token. In the order of the stores. */
export async function makeStores(
  database: string,
  stores: readonly string[],
  usersEach = 1,
): Promise<UserToken[]> {
  await using storage = new PostgresStorage(database, { create: true });
  await storage.open();
  const made: UserToken[][] = [];
  const entries = stores.entries();
  const make = async () => {
    for (const [at, store] of entries) {
      made[at] = [];
      for (let number = 1; number <= usersEach; number++) {
        const user = `user ${number}`;
        made[at].push({ store, user, token: await addToken(storage, user, { store }) });
      }
    }
  };
  await Promise.all(Array.from({ length: tokensAtOnce }, make));
  return made.flat();
}

/**
 * Adds the plants 1 to `count`. Plant `id` belongs to the user `id % users.length` of the list, whose first is number
 * 0 (plants.ts). So a store has only some of the ids. `url` has one host.
 */
export async function fillStores(
  url: string,
  users: readonly Pick<UserToken, 'store' | 'user'>[],
  count: number,
): Promise<void> {
  const owners = await ownersOf(url);
  const found = users.map(({ store, user }) => owners.get(`${store}\n${user}`));
  const column = (key: 'store' | 'id') =>
    `'{${found.map((owner) => owner?.[key]).join()}}'::bigint[]`;
  await query(
    url,
    `INSERT INTO plant_store.plants (store, id, owner, tag, name)
     SELECT owners.store, plant, owners.id, 'bed ' || (plant % 20), 'Monstera deliciosa ' || plant
     FROM generate_series(1, ${count}) AS plant
     JOIN unnest(${column('store')}, ${column('id')}) WITH ORDINALITY AS owners (store, id, at)
       ON owners.at = plant % ${users.length} + 1`,
  );
  await query(
    url,
    `UPDATE plant_store.stores SET version = version + 1, last_id = greatest(last_id, ${count})`,
  );
  await query(url, 'VACUUM (ANALYZE) plant_store.plants');
}

interface Owner {
  store: string;
  id: string;
}

/** All users by the names of the store and the user. */
async function ownersOf(url: string): Promise<Map<string, Owner>> {
  const rows = await query(
    url,
    `SELECT stores.name AS "storeName", users.name, users.store, users.id
     FROM plant_store.users JOIN plant_store.stores USING (store)`,
  );
  // The selected columns.
  const users = rows as (Owner & { storeName: string; name: string })[];
  return new Map(users.map((user) => [`${user.storeName}\n${user.name}`, user]));
}
