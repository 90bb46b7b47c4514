/**
 * Users and stores in SQLite, for operators.
 */
import type { Role } from '../../access/access.ts';
import type { UserStorage } from '../../access/user-storage.ts';
import type { PlantCounts } from './plant-counts.ts';
import type { Prepare, Sync } from '../driver.ts';
import { shareOfRow, tokenOfRow, type Log, type SharedRow, type TokenOfUserRow } from './log.ts';
import type { Stores } from './stores.ts';

export function openUsers(
  prepare: Prepare,
  counts: PlantCounts,
  stores: Stores,
  log: Log,
): Sync<UserStorage> {
  const listStores = prepare<[store: string, lastId: number, users: number]>(`
    SELECT name, last_id,
           (SELECT count(*) FROM users WHERE users.store = stores.store AND removed_at IS NULL)
    FROM stores WHERE name > ? ORDER BY name LIMIT ?`);
  const list = prepare<[store: string, user: string, role: Role, tokens: number]>(`
    SELECT stores.name, users.name, users.role,
           (SELECT count(*) FROM tokens INDEXED BY tokens_by_user
            WHERE tokens.store = users.store AND tokens.user = users.user AND revoked_at IS NULL
              AND (expires_at IS NULL OR expires_at > ?4))
    FROM stores JOIN users ON users.store = stores.store
    WHERE stores.name = ?1 AND users.name > ?2 AND removed_at IS NULL
    ORDER BY users.name LIMIT ?3`);
  const find = prepare<[store: number, user: number | null, role: Role | null]>(`
    SELECT stores.store, users.user, iif(users.removed_at IS NULL, users.role, NULL)
    FROM stores LEFT JOIN users ON users.store = stores.store AND users.name = ?2
    WHERE stores.name = ?1`);
  const namesOf = prepare<[user: number, name: string]>(`
    SELECT users.user, users.name FROM json_each(?2) AS wanted CROSS JOIN users
    WHERE users.store = ?1 AND users.user = wanted.value`);
  const revokeTokens = prepare<TokenOfUserRow>(`
    UPDATE tokens INDEXED BY tokens_by_user SET revoked_at = ?3
    WHERE store = ?1 AND user = ?2 AND revoked_at IS NULL RETURNING hash, scopes`);
  const endGiven = prepare<SharedRow>(`
    DELETE FROM shares WHERE store = ? AND owner = ? RETURNING owner, user_name, access`);
  const endReceived = prepare<SharedRow>(`
    DELETE FROM shares WHERE (store, owner, user_name) IN (
      SELECT store, owner, user_name FROM shares INDEXED BY shares_by_user
      WHERE store = ?1
        AND user_name = (SELECT name FROM users WHERE users.store = ?1 AND users.user = ?2)
      ORDER BY since, owner LIMIT ?3)
    RETURNING owner, user_name, access`);
  const movePlants = prepare<[id: number, name: string, tag: string]>(`
    UPDATE plants SET owner = ?3 WHERE store = ?1 AND id IN (
      SELECT id FROM plants INDEXED BY plants_by_owner
      WHERE store = ?1 AND owner = ?2 ORDER BY id LIMIT ?4)
      AND EXISTS (SELECT 1 FROM users WHERE store = ?1 AND user = ?3 AND removed_at IS NULL)
    RETURNING id, name, tag`);
  const findActive = prepare(
    'SELECT 1 FROM users WHERE store = ? AND user = ? AND removed_at IS NULL',
  );
  const remove = prepare(`
    UPDATE users SET removed_at = coalesce(removed_at, ?3), removed_version = ?4
    WHERE store = ?1 AND user = ?2
      AND NOT EXISTS (SELECT 1 FROM shares WHERE store = ?1 AND owner = ?2)
      AND NOT EXISTS (SELECT 1 FROM plants INDEXED BY plants_by_owner WHERE store = ?1 AND owner = ?2)`);

  function revokeAll(store: number, user: number, revokedAtMs: number): void {
    for (const row of revokeTokens.all(store, user, revokedAtMs)) {
      log.addUnlessOff(store, { event: 'token-revoked', ...tokenOfRow(store, user, row) });
    }
  }

  return {
    listStores({ after = '', limit }) {
      const rows = listStores.all(after, limit);
      return rows.map(([store, lastId, users]) => ({ store, users, lastId }));
    },

    list(name, { after = '', limit }) {
      const rows = list.all(name, after, limit, Date.now());
      return rows.map(([store, user, role, activeTokens]) => ({ store, user, role, activeTokens }));
    },

    find(storeName, userName = '') {
      const [store, user = null, role] = find.get(storeName, userName) ?? [];
      if (store === undefined || user === null) return { store, user: undefined };
      return { store, user: { store, user, role: role ?? undefined } };
    },

    namesOf: (store, users) => new Map(namesOf.all(store, JSON.stringify(users))),

    endAccess({ store, user }, revokedAtMs, limit) {
      revokeAll(store, user, revokedAtMs);
      const ended = [...endGiven.all(store, user), ...endReceived.all(store, user, limit)];
      for (const row of ended) {
        log.addUnlessOff(store, { event: 'share-ended', ...shareOfRow(row) });
      }
      return ended.length;
    },

    movePlants({ store, user: from }, to, limit) {
      counts.clear();
      const moved = movePlants.all(store, from, to, limit);
      for (const [plant, name, tag] of moved) {
        log.addUnlessOff(store, { event: 'moved', plant, owner: from, name, tag });
      }
      return moved.length;
    },

    remove({ store, user }, removedAtMs) {
      const { version } = stores.of(store);
      const isActive = findActive.get(store, user) !== undefined;
      if (remove.run(store, user, removedAtMs, version).changes === 0) return false;
      if (isActive) log.addUnlessOff(store, { event: 'user-removed', owner: user });
      revokeAll(store, user, removedAtMs);
      return true;
    },
  };
}
