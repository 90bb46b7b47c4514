/**
 * The keys of creates in SQLite.
 */
import type { NewKey } from '../../plants/decide.ts';
import { keepKeysMs, type StoredKey } from '../../plants/idempotency.ts';
import type { Prepare } from '../driver.ts';

/** Each new key removes up to two old ones, so that the table stays short. */
const maxRemovedKeys = 2;

export type IdempotencyKeys = ReturnType<typeof openIdempotencyKeys>;

export function openIdempotencyKeys(prepare: Prepare) {
  const findOne = prepare<[fingerprint: string, plant: number]>(`
    SELECT fingerprint, plant FROM idempotency_keys
    WHERE store = ?1 AND key_hash = ?2 AND user_id = ?3 AND at >= ?4 AND position > (
      SELECT removed_position FROM users WHERE users.store = ?1 AND users.id = ?3)`);
  const set = prepare(`
    INSERT OR REPLACE INTO idempotency_keys (store, key_hash, user_id, fingerprint, plant, position, at)
    VALUES (?, ?, ?, ?, ?, ?, ?)`);
  const removeOld = prepare(`
    DELETE FROM idempotency_keys WHERE (store, key_hash, user_id) IN (
      SELECT store, key_hash, user_id FROM idempotency_keys INDEXED BY idempotency_keys_by_time
      WHERE store = ? AND at < ? ORDER BY at LIMIT ${maxRemovedKeys})`);

  return {
    find(store: number, user: number, key: string): StoredKey | undefined {
      const row = findOne.get(store, key, user, Date.now() - keepKeysMs);
      return row && { fingerprint: row[0], plant: row[1] };
    },

    /** `position` is that of the create: a later user of the name does not get the key. */
    add(store: number, { user, key, fingerprint, plant }: NewKey, position: number): void {
      const nowMs = Date.now();
      removeOld.run(store, nowMs - keepKeysMs);
      set.run(store, key, user, fingerprint, plant, position, nowMs);
    },
  };
}
