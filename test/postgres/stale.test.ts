/**
 * What another process has written is seen by the next request, whichever token it has.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { addToken, startApp } from '../support/app.ts';
import { query } from '../support/postgres.ts';
import { testDatabase } from '../support/storages.ts';
import { identify, idOf } from '../support/tokens.ts';

it('PostgreSQL: a token that a replica has not seen before gets no page of an earlier request', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  const open = () => database.open();
  const [here, elsewhere] = [await startApp(t, { open }), await startApp(t, { open })];
  const known = await here.token('alice');
  const list = async (token: string) =>
    (await here.call('GET', '/plants?limit=20', { token })).json;
  const plants: unknown[] = [];
  assert.deepEqual(await list(known), plants);
  for (const name of ['Fern', 'Moss', 'Ivy']) {
    const { status } = await elsewhere.call('POST', '/plants', { token: known, json: { name } });
    assert.equal(status, 201);
    plants.push({ name, tag: '' });
    assert.deepEqual(await list(await here.token('alice')), plants);
  }
});

it('PostgreSQL: after a restore, no list has a plant that was created after the backup', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  const open = () => database.open();
  const [here, elsewhere] = [await startApp(t, { open }), await startApp(t, { open })];
  const token = await here.token('alice');
  const list = async (limit: number) =>
    (await here.call('GET', `/plants?limit=${limit}`, { token })).json;
  for (let at = 0; at < 2; at++) assert.deepEqual(await list(20), []); // also caches the version
  const [backup] = await query(
    database.url,
    'SELECT to_json(stores) AS row FROM plant_store.stores',
  );

  await elsewhere.call('POST', '/plants', { token, json: { name: 'Fern' } });
  assert.deepEqual(await list(21), [{ name: 'Fern', tag: '' }]);
  const { row } = backup as { row: unknown }; // the only column
  await query(
    database.url,
    `BEGIN;
     DELETE FROM plant_store.plants;
     UPDATE plant_store.stores SET version = old.version, writer = old.writer
     FROM json_populate_record(NULL::plant_store.stores, '${JSON.stringify(row)}') AS old;
     COMMIT`,
  );
  for (const limit of [20, 21]) assert.deepEqual(await list(limit), []);
});

it('PostgreSQL: what changes nothing keeps the cached grants of the store', async (t) => {
  await using storage = await (await testDatabase(t, 'PostgreSQL')).open();
  const [token, ended] = [await addToken(storage, 'alice'), await addToken(storage, 'bob')];
  const [alice, bob] = await Promise.all([token, ended].map((one) => identify(storage, one)));
  assert.ok(alice && bob);
  const { store } = alice.caller;
  const share = { owner: 'alice', user: 'bob', access: 'read' } as const;
  const repeated = [
    () => storage.shares.set(store, share, 0),
    () => storage.identity.revokeToken(idOf(ended), 1),
    () => storage.users.endAccess(bob.caller, 1, 10),
    () => storage.shares.end(store, [share]),
  ];
  for (const change of repeated) {
    await change();
    const cached = await identify(storage, token);
    await change();
    assert.equal(await identify(storage, token), cached, String(change));
  }
});
