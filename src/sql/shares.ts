/**
 * Shares on both engines.
 */
import { everyone, maxOwnersInReach, type Caller, type ShareAccess } from '../access/access.ts';
import {
  maxGivenShares,
  maxOtherUsers,
  sharesPageOf,
  tooManyShares,
  userRemoved,
  type Share,
  type ShareEnds,
  type ShareRow,
  type ShareStorage,
} from '../access/share-storage.ts';
import { sql, type Query } from './statement.ts';
import { writeOf, type Engine } from './write.ts';

const ownerNamed = (name: string) =>
  `(SELECT users.id FROM plant_store.users WHERE users.store = $1 AND users.name = ${name})`;

/**
 * The shares in effect that a user receives, one for each owner, in the order in which the owners began to share.
 * `name` and `id` are expressions for the user. `kind` as in ShareRow.
 */
export function receivedShares(name: string, id: string): string {
  const oldest = (receiver: string, kind: number) => `
    SELECT * FROM (
      SELECT owner, access, since, ${kind} AS kind
      FROM plant_store.shares /* INDEXED BY shares_by_user */
      WHERE shares.store = $1 AND shares.user_name = ${receiver}
      ORDER BY since, owner LIMIT ${maxOwnersInReach}
    ) AS oldest_${kind}`;
  return `
    SELECT owner, max(access) AS access, min(kind) AS kind
    FROM (${oldest(name, 1)} UNION ALL ${oldest(`'${everyone}'`, 2)}) AS of_both
    WHERE owner <> ${id}
    GROUP BY owner ORDER BY min(since), owner LIMIT ${maxOwnersInReach - 1}`;
}

export const shareSql = {
  /** The owner unless removed, the number of their shares, and what they share with a user. */
  findOwner: sql<readonly [owner: number, shares: number, access: ShareAccess | null]>`
    SELECT users.id,
      (SELECT count(*) FROM plant_store.shares WHERE shares.store = $1 AND shares.owner = users.id),
      (SELECT shares.access FROM plant_store.shares
       WHERE shares.store = $1 AND shares.owner = users.id AND shares.user_name = $3)
    FROM plant_store.users
    WHERE users.store = $1 AND users.name = $2 AND users.role IS NOT NULL`,
  set: sql`
    INSERT INTO plant_store.shares (store, owner, user_name, access, since)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (store, owner, user_name) DO UPDATE SET access = excluded.access`,
  find: sql<readonly [owner: number, access: ShareAccess]>`
    SELECT owner, access FROM plant_store.shares
    WHERE store = $1 AND owner = ${ownerNamed('$2')} AND user_name = $3`,
  end: sql`DELETE FROM plant_store.shares WHERE store = $1 AND owner = $2 AND user_name = $3`,
  ofUser: sql<ShareRow>`
    SELECT name, access, kind
    FROM (
      SELECT user_name AS name, access, 0 AS kind FROM plant_store.shares
      WHERE store = $1 AND owner = ${ownerNamed('$2')} AND user_name > $3
      ORDER BY user_name LIMIT $4::bigint
    ) AS given
    UNION ALL
    SELECT name, access, kind
    FROM (
      SELECT users.name, in_effect.access, in_effect.kind
      FROM (${receivedShares('$2', `coalesce(${ownerNamed('$2')}, 0)`)}) AS in_effect
      JOIN plant_store.users ON users.id = in_effect.owner
      WHERE users.store = $1 AND users.name > $3 ORDER BY users.name LIMIT $4::bigint
    ) AS received
    ORDER BY name, kind`,
  list: sql<readonly [owner: string, user: string, access: ShareAccess]>`
    SELECT users.name, shares.user_name, shares.access
    FROM plant_store.shares JOIN plant_store.users
      ON users.store = shares.store AND users.id = shares.owner
    WHERE shares.store = $1 AND users.store = $1
      AND (shares.owner, shares.user_name) > (coalesce(${ownerNamed('$2')}, 0), $3)
    ORDER BY shares.owner, shares.user_name LIMIT $4`,
};

export const shareWrites = {
  setShare: (
    store: number,
    { owner: ownerName, user, access }: Share,
    sinceMs: number,
    by?: Caller['identified'],
    request?: string,
  ) =>
    writeOf({
      store,
      by,
      request,
      reads: [[shareSql.findOwner, [store, ownerName, user]]],
      decide([[found]]) {
        if (found === undefined) throw userRemoved();
        const [owner, shares, before] = found;
        const isNew = before === null;
        if (before === access) return { result: isNew };
        if (isNew && shares >= maxGivenShares) throw tooManyShares();
        const event = isNew ? 'shared' : 'share-changed';
        return {
          result: isNew,
          writes: () => [[shareSql.set, [store, owner, user, access, sinceMs]]],
          entries: [{ event, owner, name: user, tag: access }],
        };
      },
    }),

  endShares: (
    store: number,
    ends: readonly ShareEnds[],
    by?: Caller['identified'],
    request?: string,
  ) =>
    writeOf({
      store,
      by,
      request,
      reads: ends.map(({ owner, user }): Query<readonly [owner: number, access: ShareAccess]> => [
        shareSql.find,
        [store, owner, user],
      ]),
      decide(found) {
        const ended = found.flatMap(([row], at) => {
          const name = ends[at]?.user;
          return row === undefined ? [] : [{ owner: row[0], name, tag: row[1] }];
        });
        return {
          result: ended.length > 0,
          writes: () => ended.map(({ owner, name }) => [shareSql.end, [store, owner, name]]),
          entries: ended.map((share) => ({ event: 'share-ended', ...share })),
        };
      },
    }),
};

export function openShares(engine: Engine): ShareStorage {
  return {
    set: (store, share, sinceMs, by, request) =>
      engine.write('setShare', store, share, sinceMs, by?.identified, request),

    end: (store, ends, by, request) =>
      engine.write('endShares', store, ends, by?.identified, request),

    async of(store, user, { after = '', limit = maxOtherUsers } = {}) {
      const rows = await engine.read(store, shareSql.ofUser, [store, user, after, limit + 1]);
      return sharesPageOf(user, rows, limit);
    },

    async find(store, { owner, user }) {
      const [row] = await engine.read(store, shareSql.find, [store, owner, user]);
      return row?.[1];
    },

    async list(store, after, limit) {
      const values = [store, after?.owner ?? '', after?.user ?? '', limit];
      const rows = await engine.read(store, shareSql.list, values);
      return rows.map(([owner, user, access]) => ({ owner, user, access }));
    },
  };
}
