/**
 * The page of a list comes with the grant of its caller, so a list waits once for the database.
 */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { startApp, type TokenOptions } from '../support/app.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { openPostgres } from '../support/storages.ts';

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
  return { app, turnsOf };
}

const anyone: [string, TokenOptions][] = [
  ['a member', {}],
  ['a manager', { role: 'manager' }],
];

for (const [who, access] of anyone) {
  it(`PostgreSQL: a page takes one round trip for ${who}, with or without a cached grant`, async (t) => {
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
      turns.later.push(await list(1)); // no page with this cursor is cached
    }
    t.diagnostic(JSON.stringify(turns));
    assert.equal(Math.min(...turns.first), 1);
    assert.equal(Math.min(...turns.later), 1);
  });
}
