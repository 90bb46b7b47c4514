/**
 * Shares in PostgreSQL. Each change also sets the version of the store's grants, which are on the same node of a
 * cluster, so both become visible together.
 */
import { maxOwnersInReach, type Caller, type ShareAccess } from '../../access/access.ts';
import {
  maxGivenShares,
  maxOtherUsers,
  sharesPageOf,
  tooManyShares,
  userRemoved,
  type Share,
  type ShareEnds,
  type ShareRow,
  type SharesPage,
  type SharesQuery,
  type ShareStorage,
} from '../../access/share-storage.ts';
import { sql } from '../pool/connection.ts';
import { changeGrantsVersion, identifyAgain, refusalOf } from './grants.ts';
import type { LogEntry } from '../../log/change-log.ts';
import { type AppendToLog, lockVersion } from './log.ts';
import type { Names } from './names.ts';
import type { Servers } from '../servers.ts';

type CountRow = readonly [count: number, access: ShareAccess | null, isActive: boolean];

export const shareSql = {
  // The row of the store is locked. So the count is exact, and the owner is not being removed.
  count: sql<CountRow>`
    SELECT count(*), min(access) FILTER (WHERE user_name = $3), EXISTS (
      SELECT 1 FROM plant_store.users
      WHERE users.store = $1 AND users.id = $2 AND removed_at IS NULL)
    FROM plant_store.shares
    WHERE store = $1 AND owner = $2`,
  set: sql`
    INSERT INTO plant_store.shares (store, owner, user_name, access, since)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (store, owner, user_name) DO UPDATE SET access = excluded.access`,
  find: sql<readonly [access: ShareAccess]>`
    SELECT access FROM plant_store.shares WHERE store = $1 AND owner = $2 AND user_name = $3`,
  end: sql`DELETE FROM plant_store.shares WHERE store = $1 AND owner = $2 AND user_name = $3`,
  // Parentheses are needed for the order of each part.
  ofUser: sql<ShareRow>`
    (
      SELECT user_name AS name, access, false AS is_received FROM plant_store.shares
      WHERE store = $1 AND owner = $2 AND user_name > $4 ORDER BY user_name LIMIT $5::bigint + 1
    ) UNION ALL (
      SELECT name, access, true
      FROM (
        SELECT users.name, shares.access
        FROM plant_store.shares JOIN plant_store.users
          ON users.store = shares.store AND users.id = shares.owner
        WHERE shares.store = $1 AND users.store = $1 AND shares.user_name = $3
        ORDER BY shares.since, shares.owner LIMIT ${maxOwnersInReach - 1}
      ) AS oldest
      WHERE name > $4 ORDER BY name LIMIT $5::bigint + 1
    ) ORDER BY name, is_received`,
  list: sql<readonly [owner: string, user: string, access: ShareAccess]>`
    SELECT users.name, shares.user_name, shares.access
    FROM plant_store.shares JOIN plant_store.users
      ON users.store = shares.store AND users.id = shares.owner
    WHERE shares.store = $1 AND users.store = $1 AND (shares.owner, shares.user_name) > ($2, $3)
    ORDER BY shares.owner, shares.user_name LIMIT $4`,
};

export function openShares(servers: Servers, names: Names, appendToLog: AppendToLog): ShareStorage {
  return {
    async set(
      store: number,
      { owner, user, access }: Share,
      sinceMs: number,
      by?: Caller,
      request?: string,
    ): Promise<boolean> {
      const found = await names.findUser(store, owner);
      if (found === undefined) throw userRemoved();
      let isNew = false;
      let isSet = false;
      const server = await servers.ofStore(store);
      await server.transactInTwo(
        [lockVersion(store), [shareSql.count, [store, found.user, user]], ...identifyAgain(by)],
        ([locked, counted = [], identified]) => {
          const [count, before, isActive] = counted[0] as CountRow; // an aggregate always returns a row
          isNew = before === null;
          const isFull = isNew && count >= maxGivenShares;
          const values = [store, found.user, user, access, sinceMs];
          const entry: LogEntry = {
            event: isNew ? 'shared' : 'share-changed',
            by: by?.identified,
            request,
            owner: found.user,
            name: user,
            tag: access,
          };
          const refusal = refusalOf(by, identified) ?? (isFull ? tooManyShares() : undefined);
          if (refusal !== undefined) return refusal;
          isSet = isActive;
          if (!isActive || before === access) return [];
          const changes = [changeGrantsVersion(store), [shareSql.set, values]] as const;
          return [...changes, ...appendToLog(store, locked, [entry])];
        },
        { canRepeat: false },
      );
      if (!isSet) throw userRemoved();
      return isNew;
    },

    async end(
      store: number,
      ends: readonly ShareEnds[],
      by?: Caller,
      request?: string,
    ): Promise<boolean> {
      const owners = await Promise.all(ends.map(({ owner }) => names.findUser(store, owner)));
      const keys = ends.flatMap(({ user }, at) => {
        const owner = owners[at];
        return owner === undefined ? [] : [[store, owner.user, user] as const];
      });
      let hasEnded = false;
      const server = await servers.ofStore(store);
      await server.transactInTwo(
        [
          lockVersion(store),
          ...keys.map((key) => [shareSql.find, key] as const),
          ...identifyAgain(by),
        ],
        ([locked, ...rows]) => {
          const entries = keys.flatMap(([, owner, name], at): LogEntry[] => {
            const tag = rows[at]?.[0]?.[0] as ShareAccess | undefined; // a row of `find`
            const author = { by: by?.identified, request };
            return tag === undefined ? [] : [{ event: 'share-ended', ...author, owner, name, tag }];
          });
          hasEnded = entries.length > 0;
          const statements = keys.map((key) => [shareSql.end, key] as const);
          return (
            refusalOf(by, rows[keys.length]) ??
            (hasEnded
              ? [changeGrantsVersion(store), ...statements, ...appendToLog(store, locked, entries)]
              : [])
          );
        },
        { canRepeat: false },
      );
      return hasEnded;
    },

    async of(
      store: number,
      user: string,
      { after = '', limit = maxOtherUsers }: SharesQuery = {},
    ): Promise<SharesPage> {
      const owner = (await names.findUser(store, user))?.user ?? 0;
      const values = [store, owner, user, after, limit];
      return sharesPageOf(user, await servers.read(store, shareSql.ofUser, values), limit);
    },

    async list(store: number, after: ShareEnds | undefined, limit: number): Promise<Share[]> {
      const owner = after && (await names.findUser(store, after.owner));
      const rows = await servers.read(store, shareSql.list, [
        store,
        owner?.user ?? 0,
        after?.user ?? '',
        limit,
      ]);
      return rows.map(([name, user, access]) => ({ owner: name, user, access }));
    },
  };
}
