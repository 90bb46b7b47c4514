/**
 * The history of a plant, and the list of deleted plants. test/model.test.ts has their rules.
 */
import assert from 'node:assert/strict';
import { inNewStore, startApp, type Answer } from '../support/app.ts';
import { fileScope, it as itOnEach, itOnce as it } from '../support/storages.ts';
import { findUser } from '../support/scene.ts';
import { identify } from '../support/tokens.ts';

interface Entry {
  event: string;
  at: string;
  before?: { name: string };
}

const app = await startApp(fileScope());
const entries = ({ json }: Answer) => json as Entry[];

/** It is written as the service writes times, and between that time and now. */
function assertSince(startMs: number, time: string): void {
  assert.equal(new Date(time).toISOString(), time);
  assert.ok(Date.parse(time) >= startMs && Date.parse(time) <= Date.now());
}

it('a history shows who did what and when, with what was there before', async () => {
  const beforeMs = Date.now();
  const { user, token, storage, store } = inNewStore(app);
  const [alice, bob] = [await user('alice'), await user('bob')];
  await alice('POST', '/plants', { json: { name: 'Monstera', tag: 'indoor' } });
  await alice('PATCH', '/plants/1', { json: { name: 'Ficus', tag: null } });
  const owner = await findUser(storage, store, 'alice');
  const heir = await findUser(storage, store, 'bob');
  await storage.users.movePlants(owner, heir.user, 10);
  const path = '/plants/1/history';
  const history = await bob('GET', path);
  const times = entries(history).map(({ at }) => at);
  const shown = [
    `{"event":"moved","at":"${times[0]}","before":{"name":"Ficus","tag":"","owner":"alice"}}`,
    `{"event":"updated","at":"${times[1]}","user":"alice","before":{"name":"Monstera","tag":"indoor","owner":"alice"}}`,
    `{"event":"created","at":"${times[2]}","user":"alice"}`,
  ];
  assert.deepEqual([history.status, history.text], [200, `[${shown.join()}]`]);
  for (const at of times) assertSince(beforeMs, at);
  assert.equal((await alice('GET', path)).status, 404);
  const head = await bob('HEAD', path);
  assert.deepEqual([head.status, head.text], [200, '']);

  const { caller } = (await identify(storage, await token('bob'))) ?? assert.fail();
  const change = (_: unknown, at: number) => storage.plants.update(caller, 1, { name: `n${at}` });
  await Promise.all(Array.from({ length: 101 }, change)); // they are carried out in this order
  const newest = entries(await bob('GET', path));
  assert.equal(newest.length, 100);
  assert.equal(newest[0]?.before?.name, 'n99');
  assert.deepEqual(entries(await bob('GET', `${path}?limit=2`)), newest.slice(0, 2));
});

itOnEach(
  'neither the bin nor a history has an earlier plant with the id, though a clock was ahead',
  async (t) => {
    const { user, database, storage } = await startApp(t);
    const [alice, bob] = [await user('alice'), await user('bob')];
    await alice('POST', '/plants', { json: { name: 'secret', id: 5 } });
    await alice('DELETE', '/plants/5');
    await database.run(`UPDATE changes SET at = at + 60000 WHERE is_restorable = 1`);
    await bob('POST', '/plants', { json: { name: 'b', id: 5 } });
    for (let store: number | undefined = 0; store !== undefined;) {
      store = await storage.log.removeOld(Date.now() + 30_000, store);
    }
    const { text } = await bob('GET', '/plants/5/history');
    assert.doesNotMatch(text, /secret|deleted/);
    assert.match(text, /"created"/);
    assert.equal((await alice('GET', '/bin')).text, '[]');
    assert.equal((await alice('GET', '/plants/5/history')).status, 404);
  },
);
