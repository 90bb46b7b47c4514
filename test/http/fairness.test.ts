/**
 * A user with many connections, whose pages are expensive, does not delay the others.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { startApp } from '../support/app.ts';
import { resetsLate } from '../support/connection.ts';
import { fileScope, itOnce as it } from '../support/storages.ts';
import { until, untilCount } from '../support/until.ts';

const connections = 128;
const owners = 999;

const scope = fileScope();
let counted = 0;
const app = await startApp(scope, {
  addRoutes: (instance) =>
    instance.get('/counted', async () => {
      const endMs = performance.now() + 1;
      while (performance.now() < endMs);
      return { counted: ++counted };
    }),
});
const [alice, bob] = [await app.token('alice'), await app.token('bob')];
await addOwners();

/** Owners who share with alice, and have few of the plants in the store. */
async function addOwners(): Promise<void> {
  const numbers = (last: number) =>
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${last})`;
  const store = '(SELECT min(store) FROM stores)';
  await app.database.run(`
    ${numbers(owners + 1)} INSERT INTO users (store, id, name, role)
    SELECT ${store}, 1000 + n, 'owner ' || n, 'member' FROM numbers`);
  await app.database.run(`
    ${numbers(owners)} INSERT INTO shares (store, owner, user_name, access, since)
    SELECT ${store}, 1000 + n, 'alice', 'read', n FROM numbers`);
  await app.database.run(`
    ${numbers(30 * owners)} INSERT INTO plants (store, id, owner, tag, name)
    SELECT ${store}, n, 1001 + (CASE WHEN n % 10 = 0 THEN (n / 10) % ${owners} ELSE ${owners} END), '', 'x'
    FROM numbers`);
}

async function connectMany(t: TestContext, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, async () => {
    const socket = connect(app.port, '127.0.0.1');
    socket.on('error', () => {}); // the service can close before its clients
    t.after(() => socket.destroy());
    await once(socket, 'connect');
    return socket;
  });
  return Promise.all(sockets);
}

const requestOf = (path: string, token?: string) =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\n${token === undefined ? '' : `Authorization: Bearer ${token}\r\n`}\r\n`;

/** Gets a path, by default on a new connection. */
async function ask(path: string, token: string, agent: Agent | false = false): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const sent = get(app.address + path, { agent, headers });
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  await text(response);
  assert.equal(response.statusCode, 200);
}

it('handles no request of a client that has disconnected while the request waited for its turn', async (t) => {
  if (resetsLate) return t.skip(resetsLate);
  const sockets = await connectMany(t, connections);
  await app.call('GET', '/livez'); // all connections are accepted
  for (const socket of sockets) {
    socket.write(requestOf('/counted'));
    socket.resetAndDestroy();
  }
  await ask('/livez', bob);
  assert.ok(counted < connections / 2, `${counted} were handled first`);
});

it('pages of many owners on many connections let requests of others pass', async (t) => {
  const target = '/plants?limit=100&fields=id';
  const { json } = await app.call('GET', target, { token: alice });
  assert.equal((json as unknown[]).length, 100);
  assert.equal((await app.call('GET', '/plants?limit=20', { token: bob })).status, 200);

  let answered = 0;
  let refused = 0;
  const sockets = await connectMany(t, connections);
  for (const socket of sockets) {
    socket.on('data', (bytes: Buffer) => {
      if (bytes.includes('HTTP/1.1 ')) answered++;
      if (bytes.includes('HTTP/1.1 503')) refused++;
    });
  }
  // So that the service has accepted all connections, and started a request with a valid token on each.
  for (const socket of sockets) socket.write(requestOf('/plants/1', alice));
  await until('all are accepted', () => answered === connections);
  const proxy = new Agent({ keepAlive: true, maxSockets: 1 }); // a connection for requests of all users
  t.after(() => proxy.destroy());
  for (let round = 1; round <= 3; round++) {
    await ask('/plants?limit=20', alice, proxy);
    answered = 0;
    for (const socket of sockets) socket.write(requestOf(target, alice));
    const before = await Promise.all(
      [ask('/plants?limit=20', bob), ask('/plants?limit=20', bob, proxy), ask('/livez', bob)].map(
        (asked) => asked.then(() => answered),
      ),
    );
    t.diagnostic(`${before.join(', ')} of ${connections} responses came first`);
    for (const count of before) assert.ok(count < connections / 2, `${count} came first`);
    await until('all have their responses', () => answered === connections);
    assert.equal(refused, 0);
  }
});

it('reads of clients who have closed their side of the connection end', async (t) => {
  const sockets = await connectMany(t, 300);
  const answered = { single: 0, pipelined: 0 };
  const closed = sockets.map(async (socket, at) => {
    const kind = at % 2 === 0 ? 'single' : 'pipelined';
    socket.on('data', (bytes: Buffer) => {
      answered[kind] += bytes.toString('latin1').split('HTTP/1.1 200').length - 1;
    });
    socket.end(requestOf('/plants?q=nothing', alice).repeat(kind === 'single' ? 1 : 9));
    await once(socket, 'close');
  });
  await Promise.all(closed);
  const { single, pipelined } = answered;
  t.diagnostic(`there were ${single} and ${pipelined} responses`);
  assert.ok(single < 150, `${single} of 150 had a response`);
  assert.ok(pipelined < 150 * 4, `${pipelined} of 1,350 had a response`);
  assert.equal((await app.call('GET', '/plants?limit=20', { token: alice })).status, 200);
});

it('a first request passes those of many callers and strangers who never pause', async (t) => {
  const carol = await app.token('carol');
  const sockets = await connectMany(t, 2 * connections);
  let answered = 0;
  const started = new Set<Socket>();
  for (const [at, socket] of sockets.entries()) {
    const bytes = requestOf('/plants?limit=20', at % 2 === 0 ? carol : undefined);
    socket.on('data', () => {
      answered++;
      started.add(socket);
      socket.write(bytes);
    });
    socket.write(bytes);
  }
  await untilCount('first responses', sockets.length, () => started.size);
  for (const path of ['/livez', '/plants?limit=20']) {
    const before = answered;
    await ask(path, bob);
    t.diagnostic(`${answered - before} responses came before that of ${path}`);
    assert.ok(answered - before < 10 * connections, `${answered - before} came before ${path}`);
  }
});
