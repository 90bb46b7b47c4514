import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Client } from 'pg';
import { decodeSchema } from '../../src/shared/migrations.ts';
import { migrations } from '../../src/postgres/schema/migrate.ts';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { addToken, call, startApp } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { PostgresServer, query } from '../support/postgres.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { shared } from '../support/shared.ts';
import { emptyDatabase, openPostgres, testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';

/** The longest response time in any state of the database: 12 seconds in docs/how-to/replicas.md. */
const responseTimeoutMs = 12_000;

const ownServer = shared(async (t) => {
  const server = await PostgresServer.make();
  t.after(() => server[Symbol.asyncDispose]());
  return server;
});

/** A session that has run this SQL, and ends its transaction by its end. */
async function session(url: string, sql: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  return client;
}

describe('PostgreSQL: the service', () => {
  it('starts while the database is down, and is ready when the database is up', async (t) => {
    const server = ownServer();
    await server.stop();
    const env = { PLANT_STORE_DATABASE: server.url() };
    // The workers create the schema, because their primary has closed its storage.
    const service = await serve(t, ['--workers', '2'], { env });
    const { address } = service;
    assert.equal((await call(`${address}/livez`, 'GET')).status, 200);
    const readyz = async () => (await call(`${address}/readyz`, 'GET')).status;
    assert.equal(await readyz(), 503);
    await until('it reports that it is not ready', () => /is not ready yet/.test(service.output()));
    await server.start();
    await until('it is ready', async () => (await readyz()) === 200, 5_000);
    const token = await runOk(['token', 'create', 'alice'], { env });
    const json = { name: 'Monstera' };
    const create = async () => (await call(`${address}/plants`, 'POST', { token, json })).status;
    await until('a worker accepts writes', async () => (await create()) === 201);
  });

  it('refuses a database without durable commits, at startup and later', async (t) => {
    const server = ownServer();
    const app = await startApp(t, { open: () => openPostgres(server.url()) });
    const readyz = async () => (await app.call('GET', '/readyz')).status;
    assert.equal(await readyz(), 200);
    for (const setting of ['fsync', 'full_page_writes', 'synchronous_commit']) {
      const set = async (value: string, status: number) => {
        await server.query(`ALTER SYSTEM SET ${setting} = ${value}`);
        await server.query('SELECT pg_reload_conf()');
        await until(`it is ${status}`, async () => (await readyz()) === status);
      };
      await set('off', 503);
      await using storage = new PostgresStorage(server.url());
      const message = new RegExp(`runs with ${setting} = off, but Plant Store needs on`);
      await assert.rejects(storage.open(), { name: 'Refusal', message });
      await set('on', 200);
    }
  });

  it('knows that writes fail if the standby is down, or a privilege is missing', async () => {
    const server = ownServer();
    const waitFor = async (standby: string) => {
      await server.query(`ALTER SYSTEM SET synchronous_standby_names = '${standby}'`);
      await server.query('SELECT pg_reload_conf()');
    };
    await using owner = await openPostgres(server.url());
    await addToken(owner, 'alice');
    const { store = 0 } = await owner.users.find('main');
    await server.query(
      `CREATE ROLE service LOGIN PASSWORD 'service';
       GRANT USAGE ON SCHEMA plant_store TO service;
       GRANT ALL ON ALL TABLES IN SCHEMA plant_store TO service`,
    );
    const url = server.url().replace(/plants:[^@]*@/, 'service:service@');
    await using service = await openPostgres(url);
    await service.checkWrites(store, false);
    const failing = { name: 'Problem', kind: 'storage-unavailable' };
    await server.query('REVOKE INSERT ON plant_store.plants FROM service');
    await assert.rejects(service.checkWrites(store, false), failing);
    await server.query('GRANT INSERT ON plant_store.plants TO service');
    await service.checkWrites(store, false);
    await waitFor('missing');
    const isWritten = () =>
      service.checkWrites(store, false).then(
        () => true,
        () => false,
      );
    await until('commits wait', async () => !(await isWritten()));
    await assert.rejects(service.checkWrites(store, false), failing); // the last one has locked the row
    await waitFor('');
    await until('it is written', isWritten);
  });
});

describe('PostgreSQL: the service', { concurrency: true }, () => {
  it('knows that a table cannot grow, although the row of the store can be updated', async (t) => {
    const { url } = await testDatabase(t, 'PostgreSQL');
    const storage = await openPostgres(url);
    const checks: Promise<void>[] = [];
    const app = await startApp(t, {
      async open() {
        const checkWrites = storage.checkWrites.bind(storage);
        return Object.assign(storage, {
          checkWrites(store: number, needsSpace: boolean) {
            const check = checkWrites(store, needsSpace);
            checks.push(check);
            return check;
          },
        });
      },
    });
    const token = await app.token('alice');
    const create = async () => app.call('POST', '/plants', { token, json: { name: 'n' } });
    await query(
      url,
      `CREATE FUNCTION plant_store.refuse() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$`,
    );
    for (const table of ['plants', 'changes']) {
      checks.length = 0;
      await query(
        url,
        `CREATE TRIGGER refuse BEFORE INSERT ON plant_store.${table}
         FOR EACH ROW EXECUTE FUNCTION plant_store.refuse()`,
      );
      assert.match((await create()).text, /storage-full/);
      await until('a write is tried', () => checks.length > 0);
      await assert.rejects(async () => checks[0], { kind: 'storage-full' });
      await query(url, `DROP TRIGGER refuse ON plant_store.${table}`);
      assert.equal((await create()).status, 201);
      await until('a write works', async () =>
        (checks.at(-1) ?? Promise.reject()).then(
          () => true,
          () => false,
        ),
      );
    }
    const plants = await query(url, 'SELECT name FROM plant_store.plants');
    assert.deepEqual(plants, [{ name: 'n' }, { name: 'n' }]);
  });

  it('responds in time and correctly while the database hangs, and recovers', async (t) => {
    const { url, proxy } = await databaseBehindProxy(t);
    const app = await startApp(t, { open: () => openPostgres(url) });
    const token = await app.token('alice');
    const create = (id: number) => app.call('POST', '/plants', { token, json: { id, name: 'n' } });
    assert.equal((await create(1)).status, 201);
    const others: string[] = [];
    for (let store = 1; store <= 9; store++) {
      const other = await app.token('bob', { store: `store ${store}` });
      others.push(other);
      await app.call('GET', '/plants', { token: other });
    }

    proxy.isStuck = true;
    const startedMs = performance.now();
    const answers = await Promise.all([
      create(2),
      // More than there are connections for writes.
      ...others.map((other) => app.call('POST', '/plants', { token: other, json: { name: 'n' } })),
      app.call('DELETE', '/plants/1', { token }),
      app.call('GET', '/plants', { token }),
      app.call('GET', '/plants/1', { token }),
      app.call('GET', '/readyz'),
    ]);
    assert.ok(performance.now() - startedMs < responseTimeoutMs);
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

  for (const what of ['the database does not respond', 'reads hang']) {
    it(`refuses requests immediately after the first timeouts if ${what}, and names the server`, async (t) => {
      const { url, proxy, direct } = await databaseBehindProxy(t);
      const faults: unknown[] = [];
      const onServerFault = (server: string, fault: unknown) =>
        faults.push([server, fault === undefined]);
      const open = () => openPostgres(url, { create: true, onServerFault });
      const app = await startApp(t, { open });
      const token = await app.token('alice');
      const list = async () => (await app.call('GET', '/plants', { token })).status;
      assert.equal(await list(), 200);

      const isLocked = what === 'reads hang';
      const lock = await session(direct, isLocked ? 'BEGIN; LOCK TABLE plant_store.stores' : '');
      proxy.isStuck = !isLocked;
      const ready = app.call('GET', '/readyz'); // its connection is not used again
      await until('the fault is reported', async () => {
        assert.equal(await list(), 503);
        return faults.length > 0;
      });
      const startedMs = performance.now();
      for (let at = 0; at < 50; at++) assert.equal(await list(), 503);
      assert.ok(performance.now() - startedMs < responseTimeoutMs); // together, not each

      await lock.end();
      proxy.isStuck = false;
      await until('it responds again', async () => (await list()) === 200);
      assert.equal((await ready).status, 503);
      const server = `127.0.0.1:${proxy.port}`;
      assert.deepEqual(faults, [
        [server, false],
        [server, true],
      ]);
    });
  }

  it('serves other stores while the row of one store is locked', async (t) => {
    const database = await testDatabase(t, 'PostgreSQL');
    const faults: unknown[] = [];
    const onServerFault = (_server: string, fault: unknown) => faults.push(fault);
    const open = () => openPostgres(database.url, { create: true, onServerFault });
    const app = await startApp(t, { open });
    const [locked, other] = [await app.token('a', { store: 'locked' }), await app.token('b')];
    const create = async (token: string) =>
      (await app.call('POST', '/plants', { token, json: { name: 'Fern' } })).status;
    assert.deepEqual([await create(locked), await create(other)], [201, 201]);

    const locking = await session(
      database.url,
      `BEGIN; UPDATE plant_store.stores SET position = position WHERE name = 'locked'`,
    );
    let status = 0;
    const waiting = create(locked).then((outcome) => (status = outcome));
    await until('the change to the locked store is refused', async () => {
      assert.equal(await create(other), 201);
      return status !== 0;
    });
    assert.equal(await waiting, 503);
    await locking.end();
    assert.deepEqual(faults, []);
  });

  it('stops in time while the database hangs, or does not respond to a connection', async (t) => {
    const { url, proxy } = await databaseBehindProxy(t);
    const storages = [new PostgresStorage(url), new PostgresStorage(url)];
    await Promise.all(storages.map((storage) => storage.open()));
    const [connected, connecting] = storages as [PostgresStorage, PostgresStorage];
    proxy.isStuck = true;
    const startedMs = performance.now();
    await connected[Symbol.asyncDispose]();
    assert.ok(performance.now() - startedMs < responseTimeoutMs);

    proxy.cutAll();
    await until('all connections are cut', () => !proxy.hasConnections);
    const checked = assert.rejects(connecting.check());
    await until('it connects again', () => proxy.hasConnections);
    await connecting[Symbol.asyncDispose]();
    await until('it has no connection', () => !proxy.hasConnections, 500);
    await checked;
  });

  it('returns 503 while a table is locked or missing', async (t) => {
    const database = await testDatabase(t, 'PostgreSQL');
    const app = await startApp(t, { open: () => database.open() });
    const token = await app.token('alice');
    const find = async () => (await app.call('GET', '/plants/1', { token })).status;
    assert.equal((await app.call('GET', '/readyz')).status, 200); // so that it is connected

    const locking = await session(database.url, 'BEGIN; LOCK TABLE plant_store.plants');
    // On a new connection, the first request prepares the statement, and the others wait behind it.
    assert.deepEqual(await Promise.all([find(), find(), find()]), [503, 503, 503]);
    await locking.end();
    assert.equal(await find(), 404);

    await query(database.url, 'ALTER SCHEMA plant_store RENAME TO elsewhere');
    assert.equal(await find(), 503);
    assert.equal((await app.call('GET', '/readyz')).status, 503);
    await query(database.url, 'ALTER SCHEMA elsewhere RENAME TO plant_store');
    assert.equal(await find(), 404);
  });

  it('retries transactions that conflict', async (t) => {
    const database = await testDatabase(t, 'PostgreSQL');
    await setForAll(database.url, 'default_transaction_isolation', 'repeatable read');
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

it('PostgreSQL: ten replicas that start at once on an empty database create one schema', async (t) => {
  const database = await emptyDatabase(t, 'PostgreSQL');
  await setForAll(database.url, 'default_transaction_isolation', 'serializable');
  const replicas = Array.from({ length: 10 }, () => new PostgresStorage(database.url));
  t.after(() => Promise.all(replicas.map((one) => one[Symbol.asyncDispose]())));
  await Promise.all(replicas.map((one) => one.open()));
  const [row] = await query(database.url, 'SELECT version FROM plant_store.migrations');
  const { version } = row as { version: number };
  assert.equal(decodeSchema(version).version, migrations.newest);
  await Promise.all(replicas.map((one, at) => addToken(one, `user ${at % 3}`)));
  const users = await query(database.url, 'SELECT name FROM plant_store.users ORDER BY name');
  assert.deepEqual(users, [{ name: 'user 0' }, { name: 'user 1' }, { name: 'user 2' }]);
  const [stores] = await query(database.url, 'SELECT count(*)::int FROM plant_store.stores');
  assert.deepEqual(stores, { count: 1 });
});

/** For every connection to the database from now on. */
async function setForAll(url: string, setting: string, value: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  await query(url, `ALTER DATABASE ${name} SET ${setting} = '${value}'`);
}
