/**
 * The keys of creates in SQLite.
 */
import { keepKeysMs, plantOfKey, type CreateKey } from '../../plants/idempotency.ts';
import type { Prepare } from '../driver.ts';

/** Each new key removes up to two old ones, so that the table stays short. */
const maxRemovedKeys = 2;

export type IdempotencyKeys = ReturnType<typeof openIdempotencyKeys>;

export function openIdempotencyKeys(prepare: Prepare) {
  const find = prepare<[fingerprint: string, plant: number]>(`
    SELECT fingerprint, plant FROM idempotency_keys
    WHERE store = ? AND key_hash = ? AND user = ? AND at >= ?`);
  const set = prepare(`
    INSERT OR REPLACE INTO idempotency_keys (store, key_hash, user, fingerprint, plant, at)
    VALUES (?, ?, ?, ?, ?, ?)`);
  const removeOld = prepare(`
    DELETE FROM idempotency_keys WHERE (store, key_hash, user) IN (
      SELECT store, key_hash, user FROM idempotency_keys INDEXED BY idempotency_keys_by_time
      WHERE store = ? AND at < ? ORDER BY at LIMIT ${maxRemovedKeys})`);

  return {
    /** The plant that was created with the key. Throws `idempotency-key-reused`. */
    findPlant(store: number, user: number, key: CreateKey): number | undefined {
      const row = find.get(store, key[0], user, Date.now() - keepKeysMs);
      return row && plantOfKey({ fingerprint: row[0], plant: row[1] }, key);
    },

    add(store: number, user: number, [key, fingerprint]: CreateKey, plant: number): void {
      const nowMs = Date.now();
      removeOld.run(store, nowMs - keepKeysMs);
      set.run(store, key, user, fingerprint, plant, nowMs);
    },
  };
}
