/**
 * Databases of older versions, whose tokens do not name their store: the upgrade keeps these tokens.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openArchive } from '../src/cli/database.ts';
import { credentialOf } from '../src/token.ts';
import { assertKept, oldPostgres, oldSqlite, upgradeSteps } from './old-tokens.ts';
import { addToken } from './support/app.ts';
import { query } from './support/postgres.ts';
import { emptyDatabase } from './support/storages.ts';
import { addOldToken } from './support/tokens.ts';

// An upgrade waits 13 seconds for older versions, so they run at the same time.
describe('tokens of older versions', { concurrency: true }, () => {
  test('are kept by an upgrade on SQLite', async (t) => assertKept(await oldSqlite(t)));

  test('keep working in a process if the directory is not available any more', async (t) => {
    const database = await emptyDatabase(t, 'PostgreSQL');
    await using storage = await database.open();
    const grant = await storage.identity.identify(credentialOf(await addToken(storage, 'alice')));
    assert.ok(grant);
    await using archive = await openArchive(database.url, { create: false });
    const credential = credentialOf(await addOldToken(archive, grant.caller));
    assert.ok(await storage.identity.identify(credential));
    await query(database.url, 'DROP TABLE plant_store.unrouted_tokens');
    await addToken(storage, 'alice', { role: 'manager' }); // no cached grant is current any more
    assert.equal((await storage.identity.identify(credential))?.role, 'manager');
  });

  for (let steps = 0; steps <= upgradeSteps.length; steps++) {
    test(`are kept on PostgreSQL if an upgrade is killed after ${steps} statements`, async (t) =>
      assertKept(await oldPostgres(t, steps)));
  }
});
