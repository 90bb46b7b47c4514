import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { pino } from 'pino';
import { text } from 'node:stream/consumers';
import { parseList, type BareItem } from 'structured-headers';
import { maxBuckets, parseRate, TokenBuckets, type Rate } from '../../src/shared/token-buckets.ts';
import { makeToken } from '../../src/access/token.ts';
import { limitedTo, override, startApp, type Answer, type TestApp } from '../support/app.ts';
import { Connection } from '../support/connection.ts';
import { idOf } from '../support/tokens.ts';
import { until } from '../support/until.ts';

/** With a window of an hour, no bucket gets a unit during a test. */
const perHour = (requests: number): Rate => ({ requests, windowSeconds: 3_600 });

/** The only item of a list (RFC 9651), and its parameters. */
function itemOf({ headers }: Answer, name: string): [BareItem, Record<string, BareItem>] {
  const [[item, parameters], ...others] = parseList(headers.get(name) ?? '') as [
    [BareItem, Map<string, BareItem>], // the items of these lists are no inner lists
  ];
  assert.deepEqual(others, []);
  return [item, Object.fromEntries(parameters)];
}

function assertLimited(answer: Answer, detail: RegExp): void {
  assert.equal(answer.status, 429, answer.text);
  assert.partialDeepStrictEqual(answer.json, { type: '/problems/rate-limited', status: 429 });
  assert.match((answer.json as { detail: string }).detail, detail);
  const [name, { r, t = 0 }] = itemOf(answer, 'ratelimit');
  assert.equal(r, 0);
  assert.equal(itemOf(answer, 'ratelimit-policy')[0], name);
  const retryAfter = answer.headers.get('retry-after') ?? '';
  assert.match(retryAfter, /^[1-9]\d*$/);
  assert.ok(Number(retryAfter) >= Number(t), 'not earlier than the limit allows');
}

describe('the limit on the rate of requests', () => {
  it('allows exactly as many requests of each token, whatever their result', async (t) => {
    const { call, token } = await startApp(t, { limits: limitedTo(perHour(3)) });
    const [alice, bob] = [await token('alice'), await token('bob')];
    const answers = [
      await call('GET', '/plants', { token: alice }),
      await call('GET', '/plants/1', { token: alice }),
      await call('POST', '/plants', { token: alice, json: {} }),
    ];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 404, 400],
    );
    for (const [at, answer] of answers.entries()) {
      assert.deepEqual(itemOf(answer, 'ratelimit-policy'), ['token', { q: 3, w: 3_600 }]);
      const [name, { r, t: next }] = itemOf(answer, 'ratelimit');
      assert.deepEqual([name, r], ['token', 2 - at]);
      assert.ok(Number(next) > 1_100 && Number(next) <= 1_200, `the next one in ${String(next)} s`);
      assert.equal(answer.headers.get('retry-after'), null);
    }
    const refused = await call('GET', '/token', { token: alice });
    assertLimited(refused, /limited to 3\/h\. Try again in 1[12]\d\d s\./);
    const [, { t: next }] = itemOf(refused, 'ratelimit');
    assert.equal(refused.headers.get('retry-after'), String(next));
    assert.equal((await call('GET', '/plants', { token: bob })).status, 200);
    assert.equal((await call('GET', '/livez')).status, 200);
  });

  it('counts the tokens that were created with another one together with it', async (t) => {
    const { call, token } = await startApp(t, { limits: limitedTo(perHour(4)) });
    let current = await token('alice');
    for (let created = 0; created < 2; created++) {
      const { json } = await call('POST', '/tokens', { token: current });
      await call('DELETE', '/token', { token: current });
      ({ token: current } = json as { token: string });
    }
    assertLimited(await call('GET', '/plants', { token: current }), /limited to 4\/h/);
    const another = await token('alice');
    assert.equal((await call('GET', '/plants', { token: another })).status, 200);
  });

  it('logs once a minute whose requests are refused', async (t) => {
    const entries: Record<string, unknown>[] = [];
    const log = pino({ base: null }, { write: (line) => void entries.push(JSON.parse(line)) });
    const limits = { ...limitedTo(perHour(1)), authFailures: perHour(1) };
    const app = await startApp(t, { log, limits });
    const { call, token } = app;
    const [alice, bob] = [await token('alice', { store: 'north' }), await token('bob')];
    for (let sent = 0; sent < 3; sent++) await call('GET', '/plants', { token: alice });
    for (let sent = 0; sent < 3; sent++) await call('GET', '/plants', { token: bob });
    for (let sent = 0; sent < 3; sent++) await callFrom(app, '127.0.0.1', 'bad');
    for (let sent = 0; sent < 3; sent++) await callFrom(app, '127.0.0.2', 'bad');
    const named = { msg: 'requests are refused', level: 40, limit: 'more than 1/h' };
    const failures = 'more than 1/h failed authentications';
    assert.deepEqual(
      entries.map(({ time: _time, ...entry }) => entry),
      [
        { ...named, token: idOf(alice), store: 'north', user: 'alice' },
        { ...named, token: idOf(bob), store: 'main', user: 'bob' },
        { ...named, limit: failures, client: '127.0.0.1' },
        { ...named, limit: failures, client: '127.0.0.2' },
      ],
    );
  });

  it('allows another request after Retry-After', async (t) => {
    const { call, token } = await startApp(t, { limits: limitedTo(perSecond(1)) });
    const alice = await token('alice');
    const ask = () => call('GET', '/plants', { token: alice });
    assert.equal((await ask()).status, 200);
    const refused = await ask();
    assertLimited(refused, /limited to 1\/s/);
    const waitMs = Number(refused.headers.get('retry-after')) * 1_000;
    const refusedMs = performance.now();
    await until('the time has passed', () => performance.now() - refusedMs >= waitMs);
    assert.equal((await ask()).status, 200);
  });

  it('does not charge a request without a valid token or of another method', async (t) => {
    const { call, token } = await startApp(t, { limits: limitedTo(perHour(1)) });
    const alice = await token('alice');
    for (const headers of [{}, { authorization: `Bearer ${makeToken(1)}` }]) {
      const answer = await call('GET', '/plants', { headers });
      assert.equal(answer.status, 401);
      assert.equal(answer.headers.get('ratelimit'), null);
    }
    for (const method of ['OPTIONS', 'PUT']) await call(method, '/plants', { token: alice });
    assert.equal((await call('GET', '/plants', { token: alice })).status, 200);
  });

  it('reads no pages for a client that ignores it', async (t) => {
    let pages = 0;
    const { call, token } = await startApp(t, {
      limits: limitedTo(perHour(2)),
      wrap: (storage) =>
        override(storage, {
          plants: {
            list: (caller, query) => {
              pages++;
              return storage.plants.list(caller, query);
            },
          },
        }),
    });
    const alice = await token('alice');
    const statuses: number[] = [];
    for (let at = 0; at < 6; at++) {
      statuses.push((await call('GET', '/plants?limit=20', { token: alice })).status);
    }
    assert.deepEqual(statuses, [200, 200, 429, 429, 429, 429]);
    assert.ok(pages <= 3, `${pages} pages`); // PostgreSQL reads a page while it checks the grant
    const authorization = `Bearer ${' '.repeat(100)}${alice}`; // too long for the cache
    for (let at = 0; at < 3; at++) {
      const { status } = await call('GET', '/plants?limit=20', { headers: { authorization } });
      assert.equal(status, 429);
    }
    assert.ok(pages <= 3, `${pages} pages`);
  });

  it('adds no fields if it is off', async (t) => {
    const { call, token } = await startApp(t, {
      limits: { authFailures: perHour(1), maxRequestsInProgress: 1 },
    });
    const { headers } = await call('GET', '/plants', { token: await token('alice') });
    assert.deepEqual([headers.get('ratelimit'), headers.get('ratelimit-policy')], [null, null]);
  });

  it('holds a bounded number of buckets, and evicts the one that is idle for longest', () => {
    const buckets = new TokenBuckets(perHour(1));
    buckets.take('idle');
    for (let at = 0; at < maxBuckets; at++) {
      buckets.take('busy');
      buckets.take(`invented ${at}`);
    }
    assert.equal(buckets.peek('busy').isAllowed, false);
    assert.equal(buckets.peek(`invented ${maxBuckets - 1}`).isAllowed, false);
    for (const evicted of ['idle', 'invented 0']) {
      assert.equal(buckets.peek(evicted).isAllowed, true, evicted);
    }
    assert.equal(buckets.peek('invented 1').isAllowed, false);
  });

  it('is written as a number and a unit', () => {
    assert.deepEqual(parseRate('200/s'), { requests: 200, windowSeconds: 1 });
    assert.deepEqual(parseRate('1/m'), { requests: 1, windowSeconds: 60 });
    assert.deepEqual(parseRate('1000000/h'), { requests: 1_000_000, windowSeconds: 3_600 });
    for (const rate of ['', '200', '0/s', '1/d', '-1/s', '1.5/s', '1000001/s', '1/s ', '1/']) {
      assert.equal(parseRate(rate), undefined, rate);
    }
  });
});

describe('the limit on failed authentication', () => {
  const limits = { authFailures: perHour(3) };

  it('refuses bad tokens of an address that has failed too often, and accepts valid ones', async (t) => {
    const app = await startApp(t, { limits });
    const { call, token } = app;
    const [known, fresh] = [await token('alice'), await token('bob')];
    assert.equal((await call('GET', '/plants', { token: known })).status, 200);
    for (let at = 0; at < 3; at++) {
      assert.equal((await call('GET', '/plants', { token: makeToken(1) })).status, 401);
    }
    for (const bad of [makeToken(1), 'no token']) {
      const refused = await call('GET', '/plants', { token: bad });
      assertLimited(refused, /Failed authentications from your address are limited to 3\/h/);
      assert.equal(refused.headers.get('www-authenticate'), null);
      const policy = ['failed-authentication', { q: 3, w: 3_600 }];
      assert.deepEqual(itemOf(refused, 'ratelimit-policy'), policy);
    }
    assert.equal((await call('GET', '/plants', { token: known })).status, 200, 'a known token');
    assert.equal((await call('GET', '/plants')).status, 401, 'no token');
    assert.equal((await call('GET', '/plants', { token: fresh })).status, 200, 'a new token');
    assert.equal((await callFrom(app, '127.0.0.2', 'bad')).status, 401, 'another address');
  });

  it('counts every kind of failure, but no request without a token', async (t) => {
    const { call, token, storage } = await startApp(t, { limits });
    const revoked = await token('alice');
    assert.equal((await call('GET', '/plants', { token: revoked })).status, 200);
    await storage.identity.revokeToken(idOf(revoked), Date.now());
    const unknown = makeToken(1);
    for (let at = 0; at < 9; at++) assert.equal((await call('GET', '/plants')).status, 401);
    for (const bad of [revoked, unknown, unknown]) {
      assert.equal((await call('GET', '/plants', { token: bad })).status, 401);
    }
    for (const bad of [revoked, unknown]) {
      assertLimited(await call('GET', '/plants', { token: bad }), /Failed authentications/);
    }
  });

  it('is off unless it is set', async (t) => {
    const { call } = await startApp(t);
    for (let at = 0; at < 50; at++) {
      assert.equal((await call('GET', '/plants', { token: 'none' })).status, 401);
    }
  });
});

describe('the limit on requests in progress', () => {
  it('refuses one more request of a token, and counts each until its response ends', async (t) => {
    const app = await startApp(t, { limits: { maxRequestsInProgress: 2 } });
    const { call, token } = app;
    const [alice, bob] = [await token('alice'), await token('bob')];
    await call('GET', '/plants', { token: alice }); // known tokens are admitted in the order of their requests
    const held = [await begin(t, app, alice), await begin(t, app, alice)];
    const refused = await call('GET', '/plants', { token: alice });
    assertLimited(refused, /^Requests in progress with this token are limited to 2\. /);
    const policy = ['in-progress', { q: 2, qu: 'concurrent-requests' }];
    assert.deepEqual(itemOf(refused, 'ratelimit-policy'), policy);
    assert.equal((await call('GET', '/plants', { token: bob })).status, 200);

    const [first, second] = held;
    first?.write('{}');
    assert.equal((await first?.answer())?.status, 400);
    assert.equal((await call('GET', '/plants', { token: alice })).status, 200);
    second?.socket.destroy();
    const third = await begin(t, app, alice);
    await until('the aborted request has ended', async () => {
      return (await call('GET', '/plants', { token: alice })).status === 200;
    });
    third.socket.destroy();
  });

  it('does not count pipelined requests that wait', async (t) => {
    const app = await startApp(t, { limits: { maxRequestsInProgress: 1 } });
    const connection = open(t, app);
    const get = `GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await app.token('alice')}\r\n\r\n`;
    connection.write(get.repeat(8));
    for (let at = 0; at < 8; at++) assert.equal((await connection.answer())?.status, 200);
  });

  it('does not count a request whose client disconnects before it is authenticated', async (t) => {
    const identified = Promise.withResolvers<void>();
    const disconnected = Promise.withResolvers<void>();
    const app = await startApp(t, {
      limits: { maxRequestsInProgress: 1 },
      addRoutes: ({ server }) => {
        server.once('connection', (socket: Socket) => socket.once('close', disconnected.resolve));
      },
      wrap: (storage) =>
        override(storage, {
          identity: {
            identify: async (credential) => {
              identified.resolve();
              await disconnected.promise;
              return storage.identity.identify(credential);
            },
          },
        }),
    });
    const token = await app.token('alice');
    const connection = open(t, app);
    connection.write(`GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    await identified.promise;
    connection.socket.resetAndDestroy(); // closing only one side would let the service respond
    await disconnected.promise;
    for (let at = 0; at < 3; at++) {
      assert.equal((await app.call('GET', '/plants', { token })).status, 200);
    }
  });
});

function perSecond(requests: number): Rate {
  return { requests, windowSeconds: 1 };
}

function open(t: TestContext, { address }: TestApp): Connection {
  const connection = new Connection(address);
  t.after(() => connection.socket.destroy());
  return connection;
}

/** A request whose body the service waits for. */
async function begin(t: TestContext, app: TestApp, token: string): Promise<Connection> {
  const connection = open(t, app);
  connection.write(
    `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n',
  );
  assert.equal((await connection.answer())?.status, 100);
  return connection;
}

/** Sends a request from another address of this machine. */
async function callFrom({ port }: TestApp, localAddress: string, token: string) {
  const headers = { authorization: `Bearer ${token}` };
  const sent = request({ port, host: '127.0.0.1', localAddress, path: '/plants', headers }).end();
  const [response] = await once(sent, 'response');
  return { status: response.statusCode as number, text: await text(response) };
}
