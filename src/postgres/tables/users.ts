/**
 * Users and stores in PostgreSQL, for operators. Every statement can be repeated.
 */
import type { Identity, Role } from '../../access/access.ts';
import { maxId } from '../../plants/ids.ts';
import type {
  FoundUser,
  NameQuery,
  StoreRecord,
  UserRecord,
  UserStorage,
} from '../../access/user-storage.ts';
import { sql } from '../pool/connection.ts';
import { changeGrantsVersion } from './grants.ts';
import type { Names } from './names.ts';
import { ownerRange } from './plant-statements.ts';
import type { Cluster } from '../citus/cluster.ts';

const plantsOfUser = ownerRange('$2', '0', String(maxId));
const nameOfUser = 'SELECT name FROM plant_store.users WHERE users.store = $1 AND users.id = $2';

export const userSql = {
  listStores: sql<readonly [name: string, store: number]>`
    SELECT name, store FROM plant_store.named_stores WHERE name > $1 ORDER BY name LIMIT $2`,
  describeStore: sql<readonly [lastId: number, users: number]>`
    SELECT last_id, (
      SELECT count(*) FROM plant_store.users WHERE users.store = $1 AND removed_at IS NULL)
    FROM plant_store.stores WHERE store = $1`,
  listUsers: sql<readonly [name: string, role: Role, activeTokens: number]>`
    SELECT name, role, (
      SELECT count(*) FROM plant_store.tokens
      WHERE tokens.store = $1 AND user_id = users.id AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > $4))
    FROM plant_store.users
    WHERE users.store = $1 AND name > $2 AND removed_at IS NULL ORDER BY name LIMIT $3`,
  countPlants: sql<readonly [count: number]>`
    SELECT count(*) FROM (
      SELECT 1 FROM plant_store.plants WHERE ${plantsOfUser} LIMIT $3) AS counted`,
  revokeTokens: sql`
    UPDATE plant_store.tokens SET revoked_at = $3
    WHERE store = $1 AND user_id = $2 AND revoked_at IS NULL`,
  endGiven: sql`
    DELETE FROM plant_store.shares WHERE store = $1 AND owner = $2
    RETURNING owner`,
  endReceived: sql`
    DELETE FROM plant_store.shares
    WHERE store = $1 AND user_name = (${nameOfUser}) AND since <= coalesce((
      SELECT since FROM plant_store.shares WHERE store = $1 AND user_name = (${nameOfUser})
      ORDER BY since, owner LIMIT 1 OFFSET $3::bigint - 1), ${maxId})
    RETURNING owner`,
  // Locks the row of the store like a group of changes.
  changePlantsVersion: sql`
    UPDATE plant_store.stores SET version = version + 1, writer = '' WHERE store = $1`,
  movePlants: sql`
    UPDATE plant_store.plants SET owner = $3
    WHERE store = $1 AND (owner, id) > ($2, 0) AND (owner, id) <= ($2, coalesce((
      SELECT id FROM plant_store.plants WHERE ${plantsOfUser}
      LIMIT 1 OFFSET $4::bigint - 1), ${maxId}))
      AND EXISTS (
        SELECT 1 FROM plant_store.users WHERE store = $1 AND id = $3 AND removed_at IS NULL)
    RETURNING id`,
  remove: sql`
    UPDATE plant_store.users SET removed_at = coalesce(removed_at, $3)
    WHERE store = $1 AND id = $2
      AND NOT EXISTS (SELECT 1 FROM plant_store.shares WHERE store = $1 AND owner = $2)
      AND NOT EXISTS (SELECT 1 FROM plant_store.plants WHERE ${plantsOfUser})
    RETURNING id`,
};

export function openUsers(cluster: Cluster, names: Names): UserStorage {
  return {
    async listStores({ after = '', limit }: NameQuery): Promise<StoreRecord[]> {
      const server = await cluster.anyServer();
      const rows = await server.read(userSql.listStores, [after, limit]);
      return Promise.all(
        rows.map(async ([store, number]) => {
          const [row] = await cluster.read(number, userSql.describeStore, [number]);
          const [lastId = 0, users = 0] = row ?? []; // its first user is being created
          return { store, users, lastId };
        }),
      );
    },

    async list(store: string, { after = '', limit }: NameQuery): Promise<UserRecord[]> {
      const found = await names.findStore(store);
      if (found === undefined) return [];
      const values = [found, after, limit, Date.now()];
      const users = await cluster.read(found, userSql.listUsers, values);
      return users.map(([user, role, activeTokens]) => ({ store, user, role, activeTokens }));
    },

    async find(storeName: string, userName: string): Promise<FoundUser | undefined> {
      const store = await names.findStore(storeName);
      if (store === undefined) return undefined;
      const named = await names.findUser(store, userName);
      if (named === undefined) return undefined;
      return { store, user: named.user, isRemoved: named.isRemoved };
    },

    async countPlants({ store, user }: Identity, limit: number): Promise<number> {
      const [row] = await cluster.read(store, userSql.countPlants, [store, user, limit]);
      return row?.[0] ?? 0;
    },

    async endAccess(
      { store, user }: Identity,
      revokedAtMs: number,
      limit: number,
    ): Promise<number> {
      const server = await cluster.ofStore(store);
      const [, , given = [], received = []] = await server.transact(
        changeGrantsVersion(store),
        [userSql.revokeTokens, [store, user, revokedAtMs]],
        [userSql.endGiven, [store, user]],
        [userSql.endReceived, [store, user, limit]],
      );
      return given.length + received.length;
    },

    async movePlants({ store, user: from }: Identity, to: number, limit: number): Promise<number> {
      const server = await cluster.ofStore(store);
      const [, moved = []] = await server.transact(
        [userSql.changePlantsVersion, [store]],
        [userSql.movePlants, [store, from, to, limit]],
      );
      return moved.length;
    },

    async remove({ store, user }: Identity, removedAtMs: number): Promise<boolean> {
      let isRemoved = false;
      const server = await cluster.ofStore(store);
      // The first statement waits for groups of changes and new tokens in progress.
      await server.transactInTwo(
        [changeGrantsVersion(store), [userSql.remove, [store, user, removedAtMs]]],
        ([, removed = []]) => {
          isRemoved = removed.length > 0;
          return isRemoved ? [[userSql.revokeTokens, [store, user, removedAtMs]]] : [];
        },
      );
      return isRemoved;
    },
  };
}
