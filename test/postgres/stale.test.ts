/**
 * What another process has written, and what a restore or a failover has undone, is seen by the next request.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { scopes, type Grant } from '../../src/access/access.ts';
import { hashToken } from '../../src/access/token.ts';
import { keyOf } from '../../src/postgres/tables/names.ts';
import type { Storage } from '../../src/storage.ts';
import { addToken, startApp } from '../support/app.ts';
import { query } from '../support/postgres.ts';
import { testDatabase } from '../support/storages.ts';
import { identify, idOf } from '../support/tokens.ts';

/** Identifies the user by a JWT that is new. */
function signOn(
  storage: Storage,
  userName: string,
  { storeName = 'main', jwt = userName } = {},
): Promise<Grant | undefined> {
  return storage.identity.identify({
    tokenHash: hashToken(jwt),
    store: undefined,
    claims: {
      storeName,
      userName,
      scopes: ['plants:read'],
      role: 'member',
      issuedAtMs: Date.now(),
      expiresAtMs: Date.now() + 60_000,
    },
  });
}

it('PostgreSQL: every replica shows restored data and later changes after a restore of the running database', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  const open = () => database.open();
  const apps = [await startApp(t, { open }), await startApp(t, { open })] as const;
  const token = await apps[0].token('alice');
  const create = (app: 0 | 1, name: string) =>
    apps[app].call('POST', '/plants', { token, json: { name } });
  const names = async (app: 0 | 1, used = token) => {
    const { json } = await apps[app].call('GET', '/plants?limit=20&fields=name', { token: used });
    return (json as { name: string }[]).map(({ name }) => name); // a list is an array
  };
  await create(0, 'before');
  // Bob's plants are never seen unless he shares, which he does after the backup.
  const bob = await apps[0].token('bob', { scopes });
  await apps[0].call('POST', '/plants', { token: bob, json: { name: 'shared' } });
  await query(
    database.url,
    'CREATE TABLE old_stores AS TABLE plant_store.stores; CREATE TABLE old_plants AS TABLE plant_store.plants',
  );
  await apps[0].call('PUT', '/shares/alice', { token: bob, json: { access: 'read' } });
  await create(0, 'after');
  for (const used of [token, await apps[0].token('alice')]) {
    for (const app of [0, 1] as const) {
      assert.deepEqual(await names(app, used), ['before', 'shared', 'after']);
    }
  }
  await query(
    database.url,
    `BEGIN; DELETE FROM plant_store.plants; INSERT INTO plant_store.plants TABLE old_plants;
     DELETE FROM plant_store.shares; DELETE FROM plant_store.changes;
     UPDATE plant_store.stores SET (position, writer, grants, last_id, last_user) =
       (SELECT position, writer, grants, last_id, last_user FROM old_stores); COMMIT`,
  );
  assert.deepEqual(await names(0), ['before']);
  await create(1, 'since'); // the database counts as far as it had before
  assert.deepEqual(await names(0), ['before', 'since']);
  assert.deepEqual(await names(1), ['before', 'since']);
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

it('PostgreSQL: concurrent requests with new JWTs never get the store that has the number of theirs after a restore', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  await using storage = await database.open();
  const first = await signOn(storage, 'alice', { storeName: 'south', jwt: 'south' });
  const second = await signOn(storage, 'alice', { storeName: 'north', jwt: 'north' });
  const [south, north] = [first?.caller.store, second?.caller.store];
  await query(
    database.url,
    `UPDATE plant_store.stores SET name = CASE store WHEN ${south} THEN 'north' ELSE 'south' END;
     UPDATE plant_store.named_stores SET store = CASE store WHEN ${south} THEN ${north} ELSE ${south} END`,
  );
  const grants = await Promise.all(
    ['1', '2', '3'].map((jwt) => signOn(storage, 'alice', { storeName: 'south', jwt })),
  );
  assert.deepEqual(
    grants.map((grant) => grant?.storeName),
    ['south', 'south', 'south'],
  );
});

it('PostgreSQL: a user whose creation was lost in a failover does not become the user who was created since', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  await using storage = await database.open();
  const userOf = async (name: string) => (await signOn(storage, name))?.caller.user;
  await userOf('alice');
  await query(database.url, 'CREATE TABLE before AS TABLE plant_store.stores');
  const lost = await userOf('bob');
  await query(
    database.url,
    `DELETE FROM plant_store.users WHERE name = 'bob';
     UPDATE plant_store.stores SET (last_user, grants) = (SELECT last_user, grants FROM before)`,
  );
  assert.equal(await userOf('carol'), lost);
  assert.notEqual(await userOf('bob'), lost);
});

it('PostgreSQL: the next token or sign-on completes a store of which only the name was stored', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  await using storage = await database.open();
  await query(
    database.url,
    `INSERT INTO plant_store.named_stores
     VALUES (${keyOf('main')}, 'main', 42), (${keyOf('other')}, 'other', 43)`,
  );
  const byToken = await identify(storage, await addToken(storage, 'alice'));
  const bySignOn = await signOn(storage, 'alice', { storeName: 'other' });
  assert.deepEqual([byToken?.caller.store, bySignOn?.caller.store], [42, 43]);
});
