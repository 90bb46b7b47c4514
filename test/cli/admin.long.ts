/**
 * `user remove` that is killed.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Caller } from '../../src/access/access.ts';
import { runOk, start } from '../support/command.ts';
import { findUser, idsOwnedBy, ownScene } from '../support/scene.ts';
import { itOnce } from '../support/storages.ts';
import { until } from '../support/until.ts';

itOnce('user remove continues after it was killed, and loses no plant', async (t) => {
  const { storage, database, store, caller } = await ownScene(t);
  const alice = await caller('alice');
  await database.fill(
    Array.from({ length: 1_600 }, (_, at) => ({ id: at + 1, tag: '', name: `alice ${at}` })),
  );
  const bob = await caller('bob');
  const plantsOf = async (who: Caller) => (await idsOwnedBy(storage, who)).length;
  const remove = ['user', 'remove', 'alice', '--yes', '--plants-to', 'bob', '--store', store];
  remove.push('--database', database.url);
  const child = start(remove);
  const closed = once(child, 'close');
  await until('some plants have moved', async () => (await plantsOf(bob)) > 0);
  child.kill('SIGKILL');
  await closed;
  const moved = await plantsOf(bob);
  const rest = JSON.parse(await runOk([...remove, '--json']));
  assert.ok(rest.movedPlants <= 1_600 - moved); // PostgreSQL can still commit the last batch
  assert.deepEqual([await plantsOf(alice), await plantsOf(bob)], [0, 1_600]);
  assert.equal((await findUser(storage, store, 'alice')).role, undefined);
});
