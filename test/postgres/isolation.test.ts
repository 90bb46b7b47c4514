/**
 * What must not cross: stores after a restore, and the search for the stores of a node.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { hashBigint } from '../../src/postgres/citus/hash.ts';
import { ShardMap } from '../../src/postgres/citus/shard-map.ts';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { hashToken } from '../../src/access/token.ts';
import { PostgresServer, query } from '../support/postgres.ts';
import { openPostgres, testDatabase } from '../support/storages.ts';

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

it('a user whose creation was lost in a failover does not become the user who was created since', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  await using storage = await openPostgres(url);
  const identify = async (userName: string) => {
    const grant = await storage.identity.identify({
      tokenHash: hashToken(userName),
      store: undefined,
      claims: {
        storeName: 'main',
        userName,
        scopes: ['plants:read'],
        role: 'member',
        issuedAtMs: 0,
        expiresAtMs: Date.now() + 60_000,
      },
    });
    return grant?.caller.user;
  };
  await identify('alice');
  await query(url, 'CREATE TABLE before AS TABLE plant_store.stores');
  const lost = await identify('bob');
  await query(
    url,
    `DELETE FROM plant_store.users WHERE name = 'bob';
     UPDATE plant_store.stores SET (last_user, grants) = (SELECT last_user, grants FROM before)`,
  );
  assert.equal(await identify('carol'), lost);
  assert.notEqual(await identify('bob'), lost);
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
