import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { addToken, call, startApp } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { PostgresServer, query } from '../support/postgres.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';

/** More than any request may take, however the database is: docs/operations.md says 10 seconds. */
const answerMsMax = 10_000;

describe('PostgreSQL: the database', () => {
  it('may still be down when the service starts, and be back later', async (t) => {
    const server = await PostgresServer.make();
    t.after(() => server[Symbol.asyncDispose]());
    await server.stop();
    const env = { PLANT_STORE_DATABASE: server.url() };
    const service = await serve(t, [], { env });
    const { address } = service;
    assert.equal((await call(`${address}/livez`, 'GET')).status, 200);
    const readyz = async () => (await call(`${address}/readyz`, 'GET')).status;
    assert.equal(await readyz(), 503);
    await until('it says so', () => /does not answer yet/.test(service.output()));
    await server.start();
    await until('it is ready', async () => (await readyz()) === 200, 5_000);
    const token = await runOk(['token', 'create', 'alice'], { env });
    const json = { name: 'Monstera' };
    assert.equal((await call(`${address}/plants`, 'POST', { token, json })).status, 201);
  });

  it('may hang: every answer comes in time and is true, and it is used again afterwards', async (t) => {
    const { url, proxy } = await databaseBehindProxy(t);
    const app = await startApp(t, { open: async () => new PostgresStorage(url) });
    const token = await app.token('alice');
    const create = (id: number) => app.call('POST', '/plants', { token, json: { id, name: 'n' } });
    assert.equal((await create(1)).status, 201);

    proxy.isStuck = true;
    const startedMs = performance.now();
    const answers = await Promise.all([
      create(2),
      app.call('DELETE', '/plants/1', { token }),
      app.call('GET', '/plants', { token }),
      app.call('GET', '/plants/1', { token }),
      app.call('GET', '/readyz'),
    ]);
    assert.ok(performance.now() - startedMs < answerMsMax);
    for (const { status, headers } of answers) {
      assert.equal(status, 503);
      assert.ok(headers.get('retry-after'));
    }

    proxy.isStuck = false;
    proxy.cutAll();
    await until(
      'it is ready',
      async () => (await app.call('GET', '/readyz')).status === 200,
      5_000,
    );
    assert.equal((await create(3)).status, 201);
    const { json } = await app.call('GET', '/plants?fields=id', { token });
    assert.deepEqual(json, [{ id: 1 }, { id: 3 }]);
  });

  it('may hang while the service ends, which it does all the same', async (t) => {
    const { url, proxy } = await databaseBehindProxy(t);
    const storage = new PostgresStorage(url);
    await storage.open();
    proxy.isStuck = true;
    const startedMs = performance.now();
    await storage[Symbol.asyncDispose]();
    assert.ok(performance.now() - startedMs < answerMsMax);
  });

  it('may turn transactions down that met: they are tried again', async (t) => {
    const database = await testDatabase(t, 'PostgreSQL');
    const { pathname } = new URL(database.url);
    const isolation = `SET default_transaction_isolation = 'repeatable read'`;
    await query(database.url, `ALTER DATABASE ${pathname.slice(1)} ${isolation}`);
    const open = () => database.open();
    const apps = [await startApp(t, { open }), await startApp(t, { open })];
    const [token = ''] = await Promise.all(apps.map((app) => app.token('alice')));
    const creates = Array.from({ length: 40 }, async (_, at) => {
      const json = { name: `plant ${at}` };
      return apps[at % 2]?.call('POST', '/plants', { token, json });
    });
    for (const answer of await Promise.all(creates)) assert.equal(answer?.status, 201);
  });
});

it('PostgreSQL: ten replicas that start at once on an empty database make one schema', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  const replicas = Array.from({ length: 10 }, () => new PostgresStorage(database.url));
  t.after(() => Promise.all(replicas.map((one) => one[Symbol.asyncDispose]())));
  await Promise.all(replicas.map((one) => one.open()));
  const [row] = await query(database.url, 'SELECT version, holder FROM plant_store.migrations');
  assert.deepEqual(row, { version: 1, holder: '' });
  await Promise.all(replicas.map((one, at) => addToken(one, `user ${at % 3}`)));
  const users = await query(database.url, 'SELECT name FROM plant_store.users ORDER BY name');
  assert.deepEqual(users, [{ name: 'user 0' }, { name: 'user 1' }, { name: 'user 2' }]);
  const [stores] = await query(database.url, 'SELECT count(*)::int FROM plant_store.stores');
  assert.deepEqual(stores, { count: 1 });
});
