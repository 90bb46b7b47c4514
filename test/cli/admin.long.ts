/**
 * `user remove` that is killed.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { addToken } from '../support/app.ts';
import { runOk, start } from '../support/command.ts';
import { itOnce, testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';
import { firstUserWith, plantsOf } from './admin.test.ts';

itOnce('user remove continues after it was killed, and loses no plant', async (t) => {
  const database = await testDatabase(t);
  const { url } = database;
  await using storage = await database.open();
  const [alice, bob] = [
    await firstUserWith({ storage, database }, 1_600),
    await addToken(storage, 'bob'),
  ];
  const remove = ['user', 'remove', 'alice', '--yes', '--plants-to', 'bob', '--database', url];
  const child = start(remove);
  const closed = once(child, 'close');
  await until('some plants have moved', async () => (await plantsOf(storage, bob)) > 0);
  child.kill('SIGKILL');
  await closed;
  const moved = await plantsOf(storage, bob);
  const rest = JSON.parse(await runOk([...remove, '--json']));
  assert.ok(rest.movedPlants <= 1_600 - moved); // PostgreSQL can still commit the last batch
  assert.equal(await plantsOf(storage, alice), 0);
  assert.equal(await plantsOf(storage, bob), 1_600);
  assert.equal((await storage.users.find('main', 'alice'))?.isRemoved, true);
});
