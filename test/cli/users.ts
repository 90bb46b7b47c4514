/**
 * Users with plants.
 */
import assert from 'node:assert/strict';
import type { Storage } from '../../src/storage.ts';
import { addToken } from '../support/app.ts';
import type { TestDatabase } from '../support/storages.ts';
import { identify } from '../support/tokens.ts';

export async function grantOf(storage: Storage, token: string) {
  const grant = await identify(storage, token);
  assert.ok(grant);
  return grant;
}

/** Adds alice, as the first user, with many plants. Returns a token. */
export async function firstUserWith(
  storage: Storage,
  database: TestDatabase,
  plants: number,
): Promise<string> {
  const token = await addToken(storage, 'alice');
  await database.fill(
    Array.from({ length: plants }, (_, at) => ({ id: at + 1, tag: '', name: `alice ${at}` })),
  );
  return token;
}

export async function plantsOf(storage: Storage, token: string): Promise<number> {
  const { caller } = await grantOf(storage, token);
  return storage.users.countPlants(caller, 100_000);
}
