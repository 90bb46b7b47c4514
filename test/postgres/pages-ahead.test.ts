/**
 * A page is read while the grant of its caller is checked, so a list waits once for the database.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { it, type TestContext } from 'node:test';
import { defaultScopes } from '../../src/access/access.ts';
import { startApp, type TokenOptions } from '../support/app.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { openPostgres } from '../support/storages.ts';
import { until } from '../support/until.ts';

const users = 8;
/** In each direction, so that all statements of a turn arrive before the first response. */
const latencyMs = 10;

/** A service whose database is behind a proxy. */
async function start(t: TestContext) {
  const { url, proxy } = await databaseBehindProxy(t);
  proxy.latencyMs = () => latencyMs;
  const app = await startApp(t, { open: () => openPostgres(url) });
  /** How often the service sent something after a response. Its checks can add turns to those of a request. */
  const turnsOf = async (work: () => Promise<void>) => {
    proxy.turns = 0;
    await work();
    return proxy.turns;
  };
  return { app, proxy, turnsOf };
}

const anyone: [string, TokenOptions][] = [
  ['a member', {}],
  ['a manager', { role: 'manager' }],
];

for (const [who, access] of anyone) {
  it(`PostgreSQL: a page takes one round trip for ${who} with a cached grant, and two without`, async (t) => {
    const { app, turnsOf } = await start(t);
    const tokens: string[] = [];
    for (let at = 0; at < users; at++) {
      tokens.push(await app.token(`user ${at}`, { ...access, store: `store ${at}` }));
    }
    const turns = { first: [] as number[], later: [] as number[] };
    for (const token of tokens) {
      const list = (after: number) =>
        turnsOf(async () => {
          const { status } = await app.call('GET', `/plants?limit=20&after=${after}`, { token });
          assert.equal(status, 200);
        });
      turns.first.push(await list(0));
      turns.later.push(await list(1));
    }
    t.diagnostic(JSON.stringify(turns));
    assert.equal(Math.min(...turns.first), 2);
    assert.equal(Math.min(...turns.later), 1);
  });
}

it('PostgreSQL: a list that its client interrupts does not change what the next one gets', async (t) => {
  const { app, proxy } = await start(t);
  const [alice, bob] = [
    await app.token('alice', { scopes: [...defaultScopes, 'shares:write'] }),
    await app.token('bob'),
  ];
  await app.call('POST', '/plants', { token: alice, json: { name: 'Monstera' } });
  const list = async () => (await app.call('GET', '/plants?limit=20', { token: bob })).text;
  for (let round = 0; round < 5; round++) {
    // The grant that is cached is not current any more.
    await app.call('PUT', '/shares/bob', { token: alice, json: { access: 'read' } });
    const socket = connect(app.port, '127.0.0.1');
    proxy.turns = 0;
    socket.write(
      `GET /plants?limit=20 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${bob}\r\n\r\n`,
    );
    await until('the service has asked the database', () => proxy.turns > 0);
    socket.resetAndDestroy();
    assert.equal(await list(), '[{"name":"Monstera","tag":""}]');
  }
});
