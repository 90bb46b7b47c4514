/**
 * Users and stores in PostgreSQL, for operators. Every statement can be repeated.
 */
import type { Identity, Role, ShareAccess } from '../../access/access.ts';
import type {
  FoundUser,
  NameQuery,
  StoreRecord,
  UserRecord,
  UserStorage,
} from '../../access/user-storage.ts';
import { tokenId } from '../../access/token.ts';
import type { LogEntry } from '../../log/change-log.ts';
import { sql, type Row } from '../pool/connection.ts';
import { changeGrantsVersion } from './grants.ts';
import { type AppendToLog, lockVersion, toPlant, type PlantRow } from './log.ts';
import type { Names } from './names.ts';
import { ownerRange } from './plant-statements.ts';
import type { Cluster } from '../citus/cluster.ts';

type ShareRow = readonly [owner: number, user: string, access: ShareAccess];

const plantsOfUser = ownerRange('$2', '0');
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
  namesOf: sql<readonly [id: number, name: string]>`
    SELECT id, name FROM plant_store.users WHERE store = $1 AND id = ANY ($2::bigint[])`,
  countPlants: sql<readonly [count: number]>`
    SELECT count(*) FROM (
      SELECT 1 FROM plant_store.plants WHERE ${plantsOfUser} LIMIT $3) AS counted`,
  findActiveTokens: sql<readonly [hash: Uint8Array, scopes: string]>`
    SELECT hash, scopes FROM plant_store.tokens
    WHERE store = $1 AND user_id = $2 AND revoked_at IS NULL ORDER BY hash`,
  revokeTokens: sql`
    UPDATE plant_store.tokens SET revoked_at = $3
    WHERE store = $1 AND user_id = $2 AND revoked_at IS NULL`,
  findGiven: sql<ShareRow>`
    SELECT owner, user_name, access FROM plant_store.shares WHERE store = $1 AND owner = $2
    ORDER BY user_name`,
  endGiven: sql`DELETE FROM plant_store.shares WHERE store = $1 AND owner = $2`,
  findReceived: sql<ShareRow>`
    SELECT owner, user_name, access FROM plant_store.shares
    WHERE store = $1 AND user_name = (${nameOfUser}) ORDER BY since, owner LIMIT $3`,
  endReceived: sql`
    DELETE FROM plant_store.shares
    WHERE store = $1 AND owner = ANY ($3::bigint[]) AND user_name = (${nameOfUser})`,
  findMoved: sql<PlantRow>`
    SELECT id, name, tag, owner FROM plant_store.plants
    WHERE ${plantsOfUser} LIMIT $3`,
  isUser: sql`
    SELECT 1 FROM plant_store.users WHERE store = $1 AND id = $2 AND removed_at IS NULL`,
  movePlants: sql`
    UPDATE plant_store.plants SET owner = $2 WHERE store = $1 AND id = ANY ($3::bigint[])`,
  canRemove: sql<readonly [version: number, isActive: boolean]>`
    SELECT version, EXISTS (
      SELECT 1 FROM plant_store.users
      WHERE users.store = $1 AND users.id = $2 AND removed_at IS NULL)
    FROM plant_store.stores
    WHERE store = $1
      AND NOT EXISTS (SELECT 1 FROM plant_store.shares WHERE shares.store = $1 AND owner = $2)
      AND NOT EXISTS (SELECT 1 FROM plant_store.plants WHERE ${plantsOfUser})`,
  remove: sql`
    UPDATE plant_store.users SET removed_at = coalesce(removed_at, $3), removed_version = $4
    WHERE store = $1 AND id = $2`,
};

export function openUsers(cluster: Cluster, names: Names, appendToLog: AppendToLog): UserStorage {
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

    async namesOf(store, users) {
      const numbers = [...new Set(users)];
      return new Map(await cluster.read(store, userSql.namesOf, [store, numbers]));
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
      let ended = 0;
      const server = await cluster.ofStore(store);
      await server.transactInTwo(
        [
          lockVersion(store),
          [userSql.findActiveTokens, [store, user]],
          [userSql.findGiven, [store, user]],
          [userSql.findReceived, [store, user, limit]],
        ],
        ([locked, tokens = [], given = [], received = []]) => {
          const shares = [...given, ...received] as unknown as ShareRow[]; // of their statements
          ended = shares.length;
          const entries = [
            ...tokens.map((row) => revocation(store, user, row)),
            ...shares.map(([owner, name, tag]): LogEntry => ({
              event: 'share-ended',
              owner,
              name,
              tag,
            })),
          ];
          if (entries.length === 0) return [];
          return [
            changeGrantsVersion(store),
            [userSql.revokeTokens, [store, user, revokedAtMs]],
            [userSql.endGiven, [store, user]],
            [userSql.endReceived, [store, user, received.map(([owner]) => owner)]],
            ...appendToLog(store, locked, entries),
          ];
        },
      );
      return ended;
    },

    async movePlants({ store, user: from }: Identity, to: number, limit: number): Promise<number> {
      let moved = 0;
      const server = await cluster.ofStore(store);
      await server.transactInTwo(
        [
          lockVersion(store),
          [userSql.isUser, [store, to]],
          [userSql.findMoved, [store, from, limit]],
        ],
        ([locked, heirs = [], rows = []]) => {
          const plants = (rows as unknown as PlantRow[]).map(toPlant); // of `findMoved`
          moved = heirs.length === 0 ? 0 : plants.length;
          const entries = plants.map(({ id: plant, ...before }): LogEntry => ({
            event: 'moved',
            plant,
            ...before,
          }));
          const ids = plants.map(({ id }) => id);
          return moved === 0
            ? []
            : [[userSql.movePlants, [store, to, ids]], ...appendToLog(store, locked, entries)];
        },
      );
      return moved;
    },

    async remove({ store, user }: Identity, removedAtMs: number): Promise<boolean> {
      let isRemoved = false;
      const server = await cluster.ofStore(store);
      // The first statement waits for groups of changes and new tokens in progress.
      await server.transactInTwo(
        [
          lockVersion(store),
          [userSql.canRemove, [store, user]],
          [userSql.findActiveTokens, [store, user]],
        ],
        ([locked, found = [], tokens = []]) => {
          isRemoved = found.length > 0;
          const isActive = found[0]?.[1] === true;
          const entries: LogEntry[] = [
            ...(isActive ? [{ event: 'user-removed', owner: user } as const] : []),
            ...tokens.map((row) => revocation(store, user, row)),
          ];
          return isRemoved
            ? [
                changeGrantsVersion(store),
                [userSql.remove, [store, user, removedAtMs, found[0]?.[0]]],
                [userSql.revokeTokens, [store, user, removedAtMs]],
                ...appendToLog(store, locked, entries),
              ]
            : [];
        },
      );
      return isRemoved;
    },
  };
}

/** `row` is one of `findActiveTokens`. */
function revocation(store: number, owner: number, [hash, scopes]: Row): LogEntry {
  const name = tokenId(hash as Uint8Array, store);
  return { event: 'token-revoked', owner, name, tag: scopes as string };
}
