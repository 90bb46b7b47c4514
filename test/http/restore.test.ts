/**
 * A user's return to a time over HTTP. test/cli/restore-user.test.ts has what is put back, and how.
 */
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { startApp, type Send } from '../support/app.ts';
import { findUser } from '../support/scene.ts';
import { it as itOnEach, itOnce as it, testDatabase } from '../support/storages.ts';
import { identify } from '../support/tokens.ts';

interface Plan {
  plants: { id: number; outcome: string; now?: object; before?: object }[];
  undoSince?: string;
}

/** A time after all changes until now, and before all later ones. */
async function moment(): Promise<string> {
  const beforeMs = Date.now();
  while (Date.now() <= beforeMs) await setImmediate();
  return new Date().toISOString();
}

async function returnTo(send: Send, since: string): Promise<Plan> {
  const { status, json, text } = await send('POST', '/restore', { json: { since } });
  assert.equal(status, 200, text);
  return json as Plan;
}

itOnEach('a user returns their plants to a time, and nobody else’s', async (t) => {
  const { user, storage } = await startApp(t);
  const [alice, bob] = [await user('alice', { role: 'manager' }), await user('bob')];
  const create = (by: Send, id: number) =>
    by('POST', '/plants', { json: { id, name: `plant ${id}`, tag: 'a' } });
  for (const id of [1, 2, 3, 4]) await create(alice, id);
  for (const id of [11, 12, 13]) await create(bob, id);
  const list = async () =>
    (await alice('GET', '/plants?fields=id,name,tag,owner')).json as object[];
  const since = await moment();
  assert.deepEqual((await returnTo(alice, since)).plants, [], 'nothing has happened yet');
  await alice('PATCH', '/plants/1', { json: { name: 'changed', tag: null } });
  await alice('DELETE', '/plants/2');
  await create(alice, 5);
  await alice('DELETE', '/plants/3');
  await create(bob, 3);
  await alice('PATCH', '/plants/11', { json: { name: 'changed too' } });
  await alice('DELETE', '/plants/12');
  // The operator gives alice plant 3 of bob, whose id was that of a plant of hers.
  const from = await findUser(storage, 'main', 'bob');
  const { user: to } = await findUser(storage, 'main', 'alice');
  await storage.users.movePlants(from, to, 1);
  const changed = await list();

  const target = `/restore?since=${encodeURIComponent(since)}`;
  const preview = await alice('GET', target);
  assert.deepEqual(preview.json, {
    since,
    plants: [
      { id: 5, outcome: 'deleted', now: { name: 'plant 5', tag: 'a' } },
      {
        id: 1,
        outcome: 'updated',
        now: { name: 'changed', tag: '' },
        before: { name: 'plant 1', tag: 'a' },
      },
      { id: 2, outcome: 'restored', before: { name: 'plant 2', tag: 'a' } },
    ],
  });
  assert.deepEqual(await list(), changed, 'a preview changes nothing');
  const { plants, undoSince = '' } = await returnTo(alice, since);
  assert.deepEqual(plants, (preview.json as Plan).plants);
  const ofOthers = (all: object[]) =>
    all.filter((plant) => !('owner' in plant) || plant.owner !== 'alice');
  assert.deepEqual(ofOthers(await list()), ofOthers(changed));
  const history = (await alice('GET', '/plants/1/history?limit=1')).json;
  assert.partialDeepStrictEqual(history, [{ event: 'updated', user: 'alice' }]);
  assert.deepEqual((await returnTo(alice, since)).plants, [], 'it can be repeated');
  await returnTo(alice, undoSince);
  assert.deepEqual(await list(), changed);
});

it('a return leaves a plant to the user who owned it when it was deleted', async (t) => {
  const { user, storage } = await startApp(t);
  const [alice, bob] = [await user('alice', { role: 'manager' }), await user('bob')];
  await alice('POST', '/plants', { json: { id: 1, name: 'one' } });
  const since = await moment();
  const from = await findUser(storage, 'main', 'alice');
  const { user: to } = await findUser(storage, 'main', 'bob');
  await storage.users.movePlants(from, to, 1);
  await bob('DELETE', '/plants/1');
  assert.deepEqual((await returnTo(alice, since)).plants, []);
  assert.equal((await bob('POST', '/plants/1/restore')).status, 200);
});

it('a return needs a time that the log has, in the past, and a token that reads', async (t) => {
  const keepChangesMs = 60 * 60_000;
  const database = await testDatabase(t);
  const { user } = await startApp(t, { open: () => database.open({ keepChangesMs }) });
  const alice = await user('alice');
  for (const name of ['one', 'two']) await alice('POST', '/plants', { json: { name } });
  await database.run('UPDATE changes SET at = at - 7200000 WHERE position = 2');
  const refused = async (send: Send, since: string) => {
    const { status, json } = await send('GET', `/restore?since=${encodeURIComponent(since)}`);
    const posted = await send('POST', '/restore', { json: { since } });
    assert.equal(posted.status, status);
    return [status, (json as { detail: string }).detail] as const;
  };
  const [status, detail] = await refused(alice, new Date(Date.now() + 60_000).toISOString());
  assert.deepEqual([status, detail], [400, 'The time is in the future. Send an earlier one.']);
  const [early, why] = await refused(alice, '2026-01-01T00:00:00Z');
  assert.equal(early, 400);
  assert.match(why, /does not have all changes since this time\. The earliest possible time is 2/);
  assert.equal((await refused(alice, 'yesterday'))[0], 400);
  const writer = await user('alice', { scopes: ['plants:write'] });
  assert.equal((await refused(writer, new Date().toISOString()))[0], 403);
  const without = await (await startApp(t, { keepChangesMs: 0 })).user('alice');
  assert.equal((await refused(without, new Date().toISOString()))[0], 404);
});

it('a return changes up to 10,000 plants', async (t) => {
  const { user, token, storage } = await startApp(t);
  const alice = await user('alice');
  const since = await moment();
  const { caller } = (await identify(storage, await token('alice'))) ?? assert.fail();
  const add = () => storage.plants.create(caller, { name: 'one of many' });
  for (let at = 0; at < 10; at++) await Promise.all(Array.from({ length: 1_000 }, add));
  const { json } = await alice('GET', `/restore?since=${since}`);
  assert.equal((json as Plan).plants.length, 10_000);
  await add();
  const refused = await alice('POST', '/restore', { json: { since } });
  assert.equal(refused.status, 400);
  assert.match(refused.text, /More than 10000 of your plants have changed since then/);
});
