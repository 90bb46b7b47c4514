/**
 * A database to copy.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { storeOf } from '../../src/access/token.ts';
import { addToken } from '../support/app.ts';
import { emptyDatabase, type StorageName, type TestDatabase } from '../support/storages.ts';
import { idOf } from '../support/tokens.ts';

/**
 * A database with many plants, some users and stores, ended tokens, and text of all kinds. `token` is one of alice.
 */
export async function sourceOf(
  t: TestContext,
  storage: StorageName,
  plants: number,
): Promise<TestDatabase & { token: string }> {
  const database = await emptyDatabase(t, storage);
  await using opened = await database.open();
  const token = await addToken(opened, 'alice');
  const plant = (at: number) => ({
    id: at * 3 + 1,
    tag: `bed ${at % 7}`,
    name: `Plant é 𝒳 "${at}" \\`,
  });
  await database.fill(Array.from({ length: plants }, (_, at) => plant(at)));
  await addToken(opened, 'bob', { role: 'manager', scopes: ['plants:read'], expiresAtMs: 5 });
  await addToken(opened, 'alice', { store: 'elsewhere' });
  await addToken(opened, 'zoë', { store: 'élan' });
  const store = storeOf(token);
  for (const [at, owner] of ['bob', 'alice'].entries()) {
    for (let other = 0; other < 20; other++) {
      const access = other % 2 === 0 ? 'read' : 'write';
      await opened.shares.set(
        store,
        { owner, user: `friend é 𝒳 ${other}`, access },
        at * 5 - other,
      );
    }
  }
  await opened.shares.set(store, { owner: 'alice', user: 'carol', access: 'read' }, 0);
  const revoked = await addToken(opened, 'alice');
  await opened.identity.revokeToken(idOf(revoked), 7);
  return { ...database, token };
}

/** Asserts that the copy succeeded. */
export function digestIn(printed: string): string {
  const [, digest = ''] = /SHA-256 of both: ([0-9a-f]{64})$/m.exec(printed) ?? [];
  assert.notEqual(digest, '', printed);
  return digest;
}
