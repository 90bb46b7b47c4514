/**
 * Users and stores in PostgreSQL, for operators. Every statement can be repeated.
 */
import { randomBytes } from 'node:crypto';
import type { Identity, Role } from '../../access/access.ts';
import { maxId } from '../../plants/ids.ts';
import type {
  FoundUser,
  NameQuery,
  StoreRecord,
  UserRecord,
  UserStorage,
} from '../../access/user-storage.ts';
import { prepared } from '../pool/connection.ts';
import { changeGrantsVersion } from './grants.ts';
import type { Names } from './names.ts';
import { rangeOf } from './plant-statements.ts';
import type { Cluster } from '../citus/cluster.ts';

const plantsOfUser = rangeOf('owner', '$2', '0', String(maxId));

export const userSql = {
  listStores: prepared<readonly [name: string, store: number]>(
    'list_stores',
    'SELECT name, store FROM plant_store.named_stores WHERE name > $1 ORDER BY name LIMIT $2',
  ),
  describeStore: prepared<readonly [lastId: number, users: number]>(
    'describe_store',
    `
      SELECT last_id, (
        SELECT count(*) FROM plant_store.users WHERE users.store = $1 AND removed_at IS NULL)
      FROM plant_store.stores WHERE store = $1`,
  ),
  listUsers: prepared<readonly [id: number, name: string, role: Role]>(
    'list_users',
    `
      SELECT id, name, role FROM plant_store.users
      WHERE store = $1 AND name > $2 AND removed_at IS NULL ORDER BY name LIMIT $3`,
  ),
  countTokens: prepared<readonly [count: number]>(
    'count_active_tokens',
    `
      SELECT count(*) FROM plant_store.tokens
      WHERE store = $1 AND user_id = $2 AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > $3)`,
  ),
  countPlants: prepared<readonly [count: number]>(
    'count_plants',
    `
      SELECT count(*) FROM (
        SELECT 1 FROM plant_store.plants WHERE ${plantsOfUser} LIMIT $3) AS counted`,
  ),
  revokeTokens: prepared(
    'revoke_tokens',
    `
      UPDATE plant_store.tokens SET revoked_at = $3
      WHERE store = $1 AND user_id = $2 AND revoked_at IS NULL`,
  ),
  endGiven: prepared(
    'end_given_shares',
    `
      DELETE FROM plant_store.shares WHERE store = $1 AND owner = $2
      RETURNING owner`,
  ),
  endReceived: prepared(
    'end_received_shares',
    `
      DELETE FROM plant_store.shares
      WHERE store = $1 AND user_name = $2 AND since <= coalesce((
        SELECT since FROM plant_store.shares WHERE store = $1 AND user_name = $2
        ORDER BY since, owner LIMIT 1 OFFSET $3::bigint - 1), ${maxId})
      RETURNING owner`,
  ),
  // Locks the row of the store like a group of changes. Its count of plants is unknown afterwards (writer/store-changes.ts).
  changePlantsVersion: prepared(
    'change_plants_version',
    'UPDATE plant_store.stores SET version = version + 1, writer = $2 WHERE store = $1',
  ),
  movePlants: prepared(
    'move_plants',
    `
      UPDATE plant_store.plants SET owner = $3
      WHERE store = $1 AND (owner, id) > ($2, 0) AND (owner, id) <= ($2, coalesce((
        SELECT id FROM plant_store.plants WHERE ${plantsOfUser}
        LIMIT 1 OFFSET $4::bigint - 1), ${maxId}))
        AND EXISTS (
          SELECT 1 FROM plant_store.users WHERE store = $1 AND id = $3 AND removed_at IS NULL)
      RETURNING id`,
  ),
  remove: prepared(
    'remove_user',
    `
      UPDATE plant_store.users SET removed_at = coalesce(removed_at, $3)
      WHERE store = $1 AND id = $2
        AND NOT EXISTS (SELECT 1 FROM plant_store.shares WHERE store = $1 AND owner = $2)
        AND NOT EXISTS (SELECT 1 FROM plant_store.plants WHERE ${plantsOfUser})
      RETURNING id`,
  ),
};

export class Users implements UserStorage {
  readonly #cluster: Cluster;
  readonly #names: Names;

  constructor(cluster: Cluster, names: Names) {
    this.#cluster = cluster;
    this.#names = names;
  }

  async listStores({ after = '', limit }: NameQuery): Promise<StoreRecord[]> {
    const server = await this.#cluster.anyServer();
    const names = await server.read(userSql.listStores, [after, limit]);
    return Promise.all(
      names.map(async ([store, number]) => {
        const [row] = await this.#cluster.read(number, userSql.describeStore, [number]);
        const [lastId = 0, users = 0] = row ?? []; // its first user is being created
        return { store, users, lastId };
      }),
    );
  }

  async list(store: string, { after = '', limit }: NameQuery): Promise<UserRecord[]> {
    const found = await this.#names.findStore(store);
    if (found === undefined) return [];
    const users = await this.#cluster.read(found, userSql.listUsers, [found, after, limit]);
    const nowMs = Date.now();
    return Promise.all(
      users.map(async ([id, user, role]) => {
        const [row] = await this.#cluster.read(found, userSql.countTokens, [found, id, nowMs]);
        return { store, user, role, activeTokens: row?.[0] ?? 0 };
      }),
    );
  }

  async find(storeName: string, userName: string): Promise<FoundUser | undefined> {
    const store = await this.#names.findStore(storeName);
    if (store === undefined) return undefined;
    const named = await this.#names.findUser(store, userName);
    if (named === undefined) return undefined;
    return { store, user: named.user, isRemoved: named.isRemoved };
  }

  async countPlants({ store, user }: Identity, limit: number): Promise<number> {
    const [row] = await this.#cluster.read(store, userSql.countPlants, [store, user, limit]);
    return row?.[0] ?? 0;
  }

  async endAccess(identity: Identity, revokedAtMs: number, limit: number): Promise<number> {
    const { store, user } = identity;
    const described = await this.#names.describe(identity);
    const server = await this.#cluster.ofStore(store);
    const [, , given = [], received = []] = await server.transact([
      changeGrantsVersion(store),
      [userSql.revokeTokens, [store, user, revokedAtMs]],
      [userSql.endGiven, [store, user]],
      [userSql.endReceived, [store, described?.user, limit]],
    ]);
    return given.length + received.length;
  }

  async movePlants({ store, user: from }: Identity, to: number, limit: number): Promise<number> {
    const server = await this.#cluster.ofStore(store);
    const [, moved = []] = await server.transact([
      [userSql.changePlantsVersion, [store, randomBytes(9).toString('base64url')]],
      [userSql.movePlants, [store, from, to, limit]],
    ]);
    return moved.length;
  }

  async remove({ store, user }: Identity, removedAtMs: number): Promise<boolean> {
    let isRemoved = false;
    const server = await this.#cluster.ofStore(store);
    // The first statement waits for groups of changes and new tokens in progress.
    await server.transactInTwo(
      [changeGrantsVersion(store), [userSql.remove, [store, user, removedAtMs]]],
      ([, removed = []]) => {
        isRemoved = removed.length > 0;
        return isRemoved ? [[userSql.revokeTokens, [store, user, removedAtMs]]] : [];
      },
    );
    return isRemoved;
  }
}
