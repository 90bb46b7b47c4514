import assert from 'node:assert/strict';
import { it } from 'node:test';
import { changeContract } from '../change.contract.ts';
import { quotaContract } from '../quota.contract.ts';
import { shareContract } from '../share.contract.ts';
import { storageContract } from '../storage.contract.ts';
import { query } from '../support/postgres.ts';
import { openAgain, ownScene, sharedScene } from '../support/scene.ts';
import { userContract } from '../user.contract.ts';

const scene = sharedScene('PostgreSQL');
storageContract('PostgreSQL', scene);
shareContract('PostgreSQL', scene);
userContract('PostgreSQL', scene);
changeContract('PostgreSQL', scene);
quotaContract('PostgreSQL', scene);

it('PostgreSQL: the plants of a full store are counted once, even if all that follows is refused', async (t) => {
  const { storage, database, caller } = await ownScene(t, 'PostgreSQL');
  const alice = await caller('alice');
  await storage.plants.create(alice, { name: 'a' });
  const stored = () =>
    query(database.url, 'SELECT plants::integer, writer FROM plant_store.stores');
  const [before] = (await stored()) as { plants: number | null; writer: string }[]; // as selected
  const quotas = { perUser: undefined, perStore: 1 };
  const limited = await openAgain(t, database, { quotas });
  const refused = limited.plants.create(alice, { name: 'b' });
  await assert.rejects(refused, { kind: 'quota-exceeded' });
  assert.equal(before?.plants, null);
  assert.deepEqual(await stored(), [{ plants: 1, writer: before.writer }]);
});
