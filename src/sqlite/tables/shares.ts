/**
 * Shares in SQLite.
 */
import type { ShareAccess } from '../../access/access.ts';
import {
  maxGivenShares,
  maxOtherUsers,
  sharesPageOf,
  tooManyShares,
  userRemoved,
  type ShareRow,
  type ShareStorage,
} from '../../access/share-storage.ts';
import { receivedShares, type Grants } from './grants.ts';
import type { Prepare, Sync } from '../driver.ts';
import { shareOfRow, type Log, type SharedRow } from './log.ts';

export function openShares(prepare: Prepare, grants: Grants, log: Log): Sync<ShareStorage> {
  const findUser = prepare<[user: number, isRemoved: number]>(
    'SELECT user, removed_at IS NOT NULL FROM users WHERE store = ? AND name = ?',
  );
  const find = prepare<[access: ShareAccess]>(
    'SELECT access FROM shares WHERE store = ? AND owner = ? AND user_name = ?',
  );
  const countGiven = prepare<[count: number]>(
    'SELECT count(*) FROM shares WHERE store = ? AND owner = ?',
  );
  const setOne = prepare(`
    INSERT INTO shares (store, owner, user_name, access, since) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET access = excluded.access`);
  const endOne = prepare<SharedRow>(`
    DELETE FROM shares WHERE store = ? AND owner = ? AND user_name = ?
    RETURNING owner, user_name, access`);
  const ofUser = prepare<ShareRow>(`
    SELECT * FROM (
      SELECT user_name AS name, access, 0 AS is_received FROM shares
      WHERE store = :store AND owner = :owner AND user_name > :after ORDER BY user_name LIMIT :limit + 1
    ) UNION ALL SELECT * FROM (
      SELECT name, access, 1 FROM (SELECT users.name AS name, access ${receivedShares})
      WHERE name > :after ORDER BY name LIMIT :limit + 1
    ) ORDER BY name, is_received`);
  const listAll = prepare<[owner: string, user: string, access: ShareAccess]>(`
    SELECT users.name, user_name, access
    FROM shares JOIN users ON users.store = shares.store AND users.user = shares.owner
    WHERE shares.store = ? AND (owner, user_name) > (?, ?) ORDER BY owner, user_name LIMIT ?`);

  function numberOf(store: number, name: string): number | undefined {
    return findUser.get(store, name)?.[0];
  }

  return {
    set(store, { owner, user, access }, sinceMs, by, request) {
      grants.callerSince(by?.identified);
      const [ownerNumber, isRemoved] = findUser.get(store, owner) ?? [];
      if (ownerNumber === undefined || isRemoved === 1) throw userRemoved();
      const [before] = find.get(store, ownerNumber, user) ?? [];
      const isNew = before === undefined;
      if (before === access) return false;
      const [count = 0] = countGiven.get(store, ownerNumber) ?? [];
      if (isNew && count >= maxGivenShares) throw tooManyShares();
      setOne.run(store, ownerNumber, user, access, sinceMs);
      const share = shareOfRow([ownerNumber, user, access]);
      const event = isNew ? 'shared' : 'share-changed';
      log.addUnlessOff(store, { event, by: by?.identified, request, ...share });
      return isNew;
    },

    end(store, ends, by, request) {
      grants.callerSince(by?.identified);
      const ended = ends.flatMap(({ owner, user }) => {
        const ownerNumber = numberOf(store, owner);
        return ownerNumber === undefined ? [] : endOne.all(store, ownerNumber, user);
      });
      for (const row of ended) {
        const author = { by: by?.identified, request };
        log.addUnlessOff(store, { event: 'share-ended', ...author, ...shareOfRow(row) });
      }
      return ended.length > 0;
    },

    of(store, user, { after = '', limit = maxOtherUsers } = {}) {
      const owner = numberOf(store, user) ?? 0;
      return sharesPageOf(user, ofUser.all({ store, user, owner, after, limit }), limit);
    },

    list(store, after, limit) {
      const owner = after === undefined ? 0 : (numberOf(store, after.owner) ?? 0);
      const rows = listAll.all(store, owner, after?.user ?? '', limit);
      return rows.map(([name, user, access]) => ({ owner: name, user, access }));
    },
  };
}
