/**
 * What must not cross: stores after a restore, servers after a move, and the search for the stores of a node.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { it } from 'node:test';
import { parseAddress } from '../../src/postgres/address.ts';
import { hashBigint } from '../../src/postgres/hash.ts';
import { Hosts } from '../../src/postgres/hosts.ts';
import { Pool } from '../../src/postgres/pool.ts';
import { ShardMap } from '../../src/postgres/shard-map.ts';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { hashToken } from '../../src/token.ts';
import { PostgresServer } from '../support/postgres.ts';

it('concurrent requests with new JWTs never get the store that has the number of theirs after a restore', async () => {
  await using server = await PostgresServer.make();
  await using storage = new PostgresStorage(server.url());
  await storage.open();
  const identify = (storeName: string, jwt: number) =>
    storage.identity.identify({
      tokenHash: hashToken(`${storeName} ${jwt}`),
      store: undefined,
      claims: {
        storeName,
        userName: 'alice',
        scopes: ['plants:read'],
        role: 'member',
        issuedAtMs: Date.now(),
        expiresAtMs: Date.now() + 60_000,
      },
    });
  const first = await identify('south', 0);
  const second = await identify('north', 0);
  const [south, north] = [first?.caller.store, second?.caller.store];
  await server.query(`
    UPDATE plant_store.stores SET name = CASE store WHEN ${south} THEN 'north' ELSE 'south' END;
    UPDATE plant_store.named_stores SET store = CASE store WHEN ${south} THEN ${north} ELSE ${south} END`);
  const grants = await Promise.all([1, 2, 3].map((jwt) => identify('south', jwt)));
  assert.deepEqual(
    grants.map((grant) => grant?.storeName),
    ['south', 'south', 'south'],
  );
});

it('a connection that was being opened during a move is not used afterwards', async (t) => {
  await using before = await PostgresServer.make();
  await using after = await PostgresServer.make();
  // Delays the first server, so that it is still connecting when the node moves.
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    setTimeout(() => client.pipe(connect(before.port, '127.0.0.1')).pipe(client), 500);
    sockets.add(client);
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => (proxy.close(), sockets.forEach((socket) => socket.destroy())));
  const { port } = proxy.address() as AddressInfo;
  const hosts = new Hosts(parseAddress(before.url('postgres', port)));
  const pool = new Pool(hosts, {
    name: 'node',
    onLost: () => {},
    onFault: () => {},
    readTable: () => Promise.resolve(),
  });
  t.after(() => pool.close());
  const which = { name: 'which', text: `SELECT current_setting('port')` };
  const first = pool.read(which, []);
  await once(proxy, 'connection');
  pool.moveTo(new Hosts(parseAddress(after.url())));
  assert.deepEqual(await first, [[String(after.port)]]);
  assert.deepEqual(await pool.read(which, []), [[String(after.port)]]);
});

it('a shard of one store, alone on its node, does not block the process', () => {
  const [isolated, one] = [hashBigint(123_456_789_012), hashBigint(1)];
  const map = new ShardMap([
    ['stores', -(2 ** 31), isolated - 1, 1, one, 1],
    ['stores', isolated, isolated, 3, one, 2],
    ['stores', isolated + 1, 2 ** 31 - 1, 2, one, 3],
  ]);
  const found = [...map.nodesOfStores()].map(([node]) => node);
  assert.deepEqual(new Set(found), new Set([1, 2])); // and not for ever in search of a store on node 3
});
