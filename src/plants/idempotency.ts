/**
 * Keys that make a create repeatable (draft-ietf-httpapi-idempotency-key-header-07). The transaction of a create stores
 * its key, so a repetition finds it, however the first response was lost. A refused create stores nothing.
 */
import { textsOf, textValues } from './fields.ts';
import type { NewPlant } from './plant.ts';
import { Problem } from '../problem.ts';
import { shortHash } from '../shared/short-hash.ts';

/** How long a key is kept: 24 hours. */
export const keepKeysMs = 24 * 60 * 60 * 1_000;

/** Hashes of the key and of the plant that it was sent with. */
export type CreateKey = readonly [key: string, fingerprint: string];

export function createKeyOf(key: string, plant: NewPlant): CreateKey {
  return [shortHash(key), shortHash(JSON.stringify([plant.id, ...textValues(textsOf(plant))]))];
}

/** A create with this key. */
export interface StoredKey {
  fingerprint: string;
  /** The id of the plant. */
  plant: number;
}

/** The plant that a create with the key has created. Throws `idempotency-key-reused` if that was another plant. */
export function plantOfKey({ fingerprint, plant }: StoredKey, [, wanted]: CreateKey): number {
  if (fingerprint === wanted) return plant;
  throw new Problem(
    'idempotency-key-reused',
    'You have sent another plant with this "Idempotency-Key" in the last 24 hours. Use a new key for each plant.',
  );
}
