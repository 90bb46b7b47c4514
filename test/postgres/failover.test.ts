/**
 * Several hosts in an address: a standby is not the primary, nor is a former primary that starts again after its standby
 * was promoted.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { parseAddress } from '../../src/postgres/pool/address.ts';
import { sql } from '../../src/sql/statement.ts';
import type { Connection } from '../../src/postgres/pool/connection.ts';
import { Hosts } from '../../src/postgres/pool/hosts.ts';
import { call } from '../support/app.ts';
import { run, runOk, serve, type Service } from '../support/command.ts';
import { cannotHaveHosts, withHosts } from '../support/own-hosts.ts';
import { PostgresServer } from '../support/postgres.ts';
import { Proxy } from '../support/proxy.ts';
import { shared } from '../support/shared.ts';
import { until } from '../support/until.ts';

const name = 'two.test';
const addresses = ['127.0.0.1', '127.0.0.2'] as const;

const servers = shared(async (t) => {
  const primary = await PostgresServer.make();
  t.after(() => primary[Symbol.asyncDispose]());
  const standby = await primary.standby();
  t.after(() => standby[Symbol.asyncDispose]());
  const env = { PLANT_STORE_DATABASE: primary.urlWith(standby) };
  const token = await runOk(['token', 'create', 'alice'], { env });
  return { primary, standby, env, token };
});

const portOf = async (connection: Connection) =>
  (await connection.query(sql`SELECT inet_server_port()`, []))[0]?.[0];

describe('PostgreSQL: a host name with two addresses', { skip: cannotHaveHosts() }, () => {
  for (const [what, isStuck, [useless, good]] of [
    ['is read-only', false, addresses],
    ['accepts connections and never responds', true, addresses.toReversed()],
  ] as const) {
    it(`connects to ${good} if ${useless} ${what}`, async (t) => {
      const { primary, standby } = servers();
      await using wrong = await Proxy.to(standby.port, useless);
      wrong.isStuck = isStuck;
      await using right = await Proxy.to(primary.port, good, wrong.port);
      const url = `${primary.url('postgres', right.port).replace('127.0.0.1', name)}?sslmode=disable`;
      const hosts = addresses.map((address) => `${address} ${name}`);
      const { status, stdout, stderr } = await run(['token', 'create', 'alice'], {
        env: { PLANT_STORE_DATABASE: url },
        under: withHosts(t, hosts),
      });
      assert.equal(status, 0, stderr);
      assert.match(stdout, /^plant_/);
    });
  }
});

it('PostgreSQL: nothing is written to a former primary, also while it is the only server', async (t) => {
  const { primary: former, standby: promoted, env, token } = servers();
  const running = await serve(t, [], { env });
  const ready = (service: Service) => call(`${service.address}/readyz`, 'GET');
  let acknowledged = 0;
  const create = async ({ address }: Service) => {
    const { status } = await call(`${address}/plants`, 'POST', { token, json: { name: 'Fern' } });
    if (status === 201) acknowledged++;
    return status;
  };
  assert.equal(await create(running), 201);

  await promote();
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

it('PostgreSQL: a former primary is reported until it stops, and replaced once the primary answers', async (t) => {
  const { primary: former, standby: promoted } = servers();
  await promote();
  const proxies = await Promise.all([former, promoted].map(({ port }) => Proxy.to(port)));
  const [toFormer, toPromoted] = proxies as [Proxy, Proxy];
  for (const proxy of proxies) t.after(() => proxy[Symbol.asyncDispose]());
  const hosts = proxies.map(({ port }) => `127.0.0.1:${port}`);
  const address = parseAddress(former.url().replace(/127\.0\.0\.1:\d+/, hosts.join()));
  let asked = 0;
  toFormer.bytesToLive = () => {
    asked++;
    return Infinity;
  };
  const stop = new AbortController();
  t.after(() => stop.abort());

  const calm = new Hosts(address, { stop: stop.signal, resurveyMs: 60_000 });
  const closing = await calm.open();
  await calm.open();
  closing.destroy();
  await closing.closed;
  assert.equal(await portOf(await calm.open()), promoted.port);
  assert.equal(asked, 1); // an open connection shows which host is the primary

  toPromoted.isStuck = true;
  const reported: (string | undefined)[] = [];
  const service = new Hosts(address, {
    stop: stop.signal,
    onRival: (rival) => reported.push(rival),
    resurveyMs: 100,
  });
  const first = await service.open();
  assert.equal(await portOf(first), former.port);
  toPromoted.isStuck = false;
  await first.closed;
  assert.equal(await portOf(await service.open()), promoted.port);

  const askedBefore = asked;
  await until('it was asked five times more', () => asked > askedBefore + 5);
  assert.deepEqual(reported, [hosts[0]]);
  await former.stop();
  await until('it is gone', () => reported.length > 1);
  assert.deepEqual(reported, [hosts[0], undefined]);
});

it('PostgreSQL: no connection to a former primary is used if the primary answers meanwhile', async (t) => {
  const { primary: former, standby: promoted } = servers();
  await promote();
  const proxies = await Promise.all([former, promoted].map(({ port }) => Proxy.to(port)));
  const [toFormer, toPromoted] = proxies as [Proxy, Proxy];
  for (const proxy of proxies) t.after(() => proxy[Symbol.asyncDispose]());
  const hosts = proxies.map(({ port }) => `127.0.0.1:${port}`);
  const address = parseAddress(former.url().replace(/127\.0\.0\.1:\d+/, hosts.join()));
  const stop = new AbortController();
  t.after(() => stop.abort());
  const answered = Promise.withResolvers<void>();
  const options = {
    stop: stop.signal,
    resurveyMs: 100,
    /** The primary has answered, and the connection to the former one is not open yet. */
    onRival() {
      options.resurveyMs = 60_000;
      answered.resolve();
    },
  };
  const service = new Hosts(address, options);

  toPromoted.isStuck = true;
  const first = await service.open();
  assert.equal(await portOf(first), former.port);
  toFormer.latencyMs = () => {
    toFormer.latencyMs = () => 0;
    toPromoted.isStuck = false;
    return 100; // for this connection
  };
  const second = service.open();
  await answered.promise;
  assert.equal(await portOf(await second), promoted.port);
  await first.closed;
});

it('PostgreSQL: a server that is verified is found behind a former primary that answers first', async (t) => {
  const { primary: former, standby: promoted } = servers();
  await promote();
  await using slow = await Proxy.to(promoted.port);
  const address = parseAddress(
    former.urlWith(promoted).replace(String(promoted.port), `${slow.port}`),
  );
  const stop = new AbortController();
  t.after(() => stop.abort());
  const known = { ...address, hosts: [...address.hosts] };
  const [toFormer] = known.hosts.splice(0, 1);
  const service = new Hosts(known, { stop: stop.signal, verify: async () => {} });
  const first = await service.open();
  assert.ok(toFormer);
  known.hosts.unshift(toFormer);
  first.destroy();
  await first.closed;
  slow.latencyMs = () => 50;
  assert.equal(await portOf(await service.open()), promoted.port);
});

it('PostgreSQL: an address that leads to another server each time can be used', async (t) => {
  const { primary: one } = servers();
  await using other = await one.twin();
  const ports = [one.port, other.port];
  let accepted = 0;
  const balancer = createServer((client) => {
    const server = connect(ports[accepted++ % 2] ?? 0, '127.0.0.1');
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) {
      socket
        .on('error', () => {})
        .on('close', () => {
          client.destroy();
          server.destroy();
        });
    }
  });
  balancer.listen(0, '127.0.0.1');
  await once(balancer, 'listening');
  t.after(() => balancer.close());
  const { port } = balancer.address() as AddressInfo; // it listens on a port
  const stop = new AbortController();
  t.after(() => stop.abort());
  const service = new Hosts(parseAddress(one.url('postgres', port)), { stop: stop.signal });
  for (let opened = 0; opened < 5; opened++) {
    const connection = await service.open();
    assert.ok(ports.includes(Number(await portOf(connection))));
  }
  for (const connection of service.connections) connection.destroy();
});

it('PostgreSQL: connections stay with their server if others of unknown timelines answer later', async (t) => {
  const { primary: late } = servers();
  await using early = await late.twin();
  for (const server of [late, early]) {
    await server.query('REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC');
    await server.query("CREATE ROLE limited LOGIN PASSWORD 'limited'");
  }
  await using toLate = await Proxy.to(late.port);
  const { hosts } = parseAddress(late.url('postgres', toLate.port));
  const address = parseAddress(early.url().replace(/\/\/[^@]*/, '//limited:limited'));
  const stop = new AbortController();
  t.after(() => stop.abort());
  toLate.isStuck = true;
  const service = new Hosts(
    { ...address, hosts: [...hosts, ...address.hosts] },
    { stop: stop.signal, resurveyMs: 100 },
  );
  const first = await service.open();
  toLate.isStuck = false;
  await until('the other server has answered', () => toLate.turns > 3);
  await until('it is not asked any more', () => !toLate.hasConnections);
  for (const connection of [first, await service.open()]) {
    assert.equal(await portOf(connection), early.port);
  }
});

it('PostgreSQL: two primaries on the same timeline are refused, and one server with two addresses is not', async () => {
  const { primary: server } = servers();
  await using copy = await server.twin();
  const env = { PLANT_STORE_DATABASE: server.urlWith(copy) };
  await assert.rejects(runOk(['migrate'], { env }), /both accept writes/);
  await runOk(['migrate'], { env: { PLANT_STORE_DATABASE: server.urlWith(server) } });
});

/** The primary crashes, the standby is promoted unless it was before, and the former primary waits for no standby. */
async function promote(): Promise<void> {
  const { primary, standby } = servers();
  await primary.stop('SIGKILL');
  const [row] = await standby.query('SELECT pg_is_in_recovery() AS standby');
  if (isDeepStrictEqual(row, { standby: true })) await standby.query('SELECT pg_promote()');
  await primary.start();
}
