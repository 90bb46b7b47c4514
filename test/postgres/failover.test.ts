/**
 * A primary that fails, and starts again after its standby was promoted.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { call } from '../support/app.ts';
import { runOk, serve, type Service } from '../support/command.ts';
import { PostgresServer } from '../support/postgres.ts';
import { until } from '../support/until.ts';

it('PostgreSQL: nothing is written to a former primary, also while it is the only server', async (t) => {
  const former = await PostgresServer.make();
  t.after(() => former[Symbol.asyncDispose]());
  const promoted = await former.standby();
  t.after(() => promoted[Symbol.asyncDispose]());
  const env = { PLANT_STORE_DATABASE: former.urlWith(promoted) };
  const token = await runOk(['token', 'create', 'alice'], { env });
  const running = await serve(t, [], { env });
  const ready = (service: Service) => call(`${service.address}/readyz`, 'GET');
  let acknowledged = 0;
  const create = async ({ address }: Service) => {
    const { status } = await call(`${address}/plants`, 'POST', { token, json: { name: 'Fern' } });
    if (status === 201) acknowledged++;
    return status;
  };
  assert.equal(await create(running), 201);

  await former.stop('SIGKILL');
  await promoted.query('SELECT pg_promote()');
  await former.start(); // and waits for no standby
  const added = await serve(t, [], { env });
  for (const service of [running, added]) {
    await until('it accepts writes', async () => (await create(service)) === 201);
    for (let each = 0; each < 10; each++) assert.equal(await create(service), 201);
  }
  const plants = async (server: PostgresServer) => {
    const [row] = await server.query('SELECT count(*)::int AS count FROM plant_store.plants');
    return (row as { count: number }).count;
  };
  assert.deepEqual([await plants(former), await plants(promoted)], [1, acknowledged]);
  // The other service can have connected before the former primary was there.
  await until('it reports the former primary', () =>
    added.log().includes(`"server":"127.0.0.1:${former.port}"`),
  );

  await promoted.stop('SIGKILL');
  for (const service of [running, added]) {
    await until('it is not ready', async () => (await ready(service)).status === 503);
    assert.equal(await create(service), 503);
    assert.match(service.log(), /the server is a former primary/);
  }
  await former.stop();
  await promoted.start();
  for (const service of [running, added])
    await until('it accepts writes', async () => (await create(service)) === 201);
  assert.equal(await plants(promoted), acknowledged);
  await until('the former primary is gone', () => added.log().includes('other primary gone'));
});

it('PostgreSQL: two primaries on the same timeline are refused, and one server with two addresses is not', async (t) => {
  const server = await PostgresServer.make();
  t.after(() => server[Symbol.asyncDispose]());
  const copy = await server.twin();
  t.after(() => copy[Symbol.asyncDispose]());
  const env = { PLANT_STORE_DATABASE: server.urlWith(copy) };
  await assert.rejects(runOk(['migrate'], { env }), /both accept writes/);
  await runOk(['migrate'], { env: { PLANT_STORE_DATABASE: server.urlWith(server) } });
});
