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
    const { call, user } = await startApp(t, { limits: limitedTo(perHour(3)) });
    const [alice, bob] = [await user('alice'), await user('bob')];
    for (const [left, status, answer] of [
      [2, 200, await alice('GET', '/plants')],
      [1, 404, await alice('GET', '/plants/1')],
      [0, 400, await alice('POST', '/plants', { json: {} })],
    ] as const) {
      assert.equal(answer.status, status);
      assert.deepEqual(itemOf(answer, 'ratelimit-policy'), ['token', { q: 3, w: 3_600 }]);
      const [name, { r, t: next }] = itemOf(answer, 'ratelimit');
      assert.deepEqual([name, r], ['token', left]);
      assert.ok(Number(next) > 1_100 && Number(next) <= 1_200, `the next one in ${String(next)} s`);
      assert.equal(answer.headers.get('retry-after'), null);
    }
    const refused = await alice('GET', '/token');
    assertLimited(refused, /limited to 3\/h\. Try again in 1[12]\d\d s\./);
    const [, { t: next }] = itemOf(refused, 'ratelimit');
    assert.equal(refused.headers.get('retry-after'), String(next));
    assert.equal((await bob('GET', '/plants')).status, 200);
    assert.equal((await call('GET', '/livez')).status, 200);
  });

  it('counts the tokens that were created with another one together with it', async (t) => {
    const { as, token, user } = await startApp(t, { limits: limitedTo(perHour(4)) });
    let current = as(await token('alice'));
    for (let created = 0; created < 2; created++) {
      const { json } = await current('POST', '/tokens');
      await current('DELETE', '/token');
      current = as((json as { token: string }).token);
    }
    assertLimited(await current('GET', '/plants'), /limited to 4\/h/);
    const another = await user('alice');
    assert.equal((await another('GET', '/plants')).status, 200);
  });

  it('counts at most one request with a token that was deleted since it was known', async (t) => {
    let isDeleted = false;
    const { as, token } = await startApp(t, {
      limits: limitedTo(perHour(4)),
      wrap: (storage) =>
        override(storage, {
          identity: {
            identify: async (...args) =>
              isDeleted ? undefined : storage.identity.identify(...args),
          },
        }),
    });
    const alice = as(await token('alice'));
    const { json } = await alice('POST', '/tokens');
    const leaked = as((json as { token: string }).token);
    assert.equal((await leaked('GET', '/plants')).status, 200);
    isDeleted = true;
    for (let sent = 0; sent < 5; sent++) {
      assert.equal((await leaked('GET', '/plants')).status, 401);
    }
    isDeleted = false;
    assert.equal((await alice('GET', '/plants')).status, 200);
  });

  it('logs once a minute whose requests are refused', async (t) => {
    const entries: Record<string, unknown>[] = [];
    const log = pino({ base: null }, { write: (line) => void entries.push(JSON.parse(line)) });
    const limits = { ...limitedTo(perHour(1)), authFailures: perHour(1) };
    const app = await startApp(t, { log, limits });
    const [alice, bob] = [await app.token('alice', { store: 'north' }), await app.token('bob')];
    for (const send of [
      () => app.call('GET', '/plants', { token: alice }),
      () => app.call('GET', '/plants', { token: bob }),
      () => callFrom(app, '127.0.0.1', 'bad'),
      () => callFrom(app, '127.0.0.2', 'bad'),
    ]) {
      for (let sent = 0; sent < 3; sent++) await send();
    }
    const named = { msg: 'requests are refused', level: 40, limit: 'more than 1/h' };
    const failures = { ...named, limit: 'more than 1/h failed authentications' };
    assert.deepEqual(
      entries.map(({ time: _time, ...entry }) => entry),
      [
        { ...named, token: idOf(alice), store: 'north', user: 'alice' },
        { ...named, token: idOf(bob), store: 'main', user: 'bob' },
        { ...failures, client: '127.0.0.1' },
        { ...failures, client: '127.0.0.2' },
      ],
    );
  });

  it('allows another request after Retry-After', async (t) => {
    const limits = limitedTo({ requests: 1, windowSeconds: 1 });
    const alice = await (await startApp(t, { limits })).user('alice');
    assert.equal((await alice('GET', '/plants')).status, 200);
    const refused = await alice('GET', '/plants');
    assertLimited(refused, /limited to 1\/s/);
    const waitMs = Number(refused.headers.get('retry-after')) * 1_000;
    const refusedMs = performance.now();
    await until('the time has passed', () => performance.now() - refusedMs >= waitMs);
    assert.equal((await alice('GET', '/plants')).status, 200);
  });

  it('reads no pages for a client that ignores it, and charges only requests with a valid token', async (t) => {
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
    for (const headers of [{}, { authorization: `Bearer ${makeToken(1)}` }]) {
      const answer = await call('GET', '/plants', { headers });
      assert.deepEqual([answer.status, answer.headers.get('ratelimit')], [401, null]);
    }
    for (const method of ['OPTIONS', 'PUT']) await call(method, '/plants', { token: alice });
    for (const status of [200, 200, 429, 429, 429, 429]) {
      assert.equal((await call('GET', '/plants?limit=20', { token: alice })).status, status);
    }
    assert.ok(pages <= 3, `${pages} pages`); // PostgreSQL reads a page while it checks the grant
    const authorization = `Bearer ${' '.repeat(100)}${alice}`; // too long for the cache
    for (let at = 0; at < 3; at++) {
      const { status } = await call('GET', '/plants?limit=20', { headers: { authorization } });
      assert.equal(status, 429);
    }
    assert.ok(pages <= 3, `${pages} pages`);
  });

  it('holds a bounded number of buckets, and evicts the one that is idle for longest', () => {
    const buckets = new TokenBuckets(perHour(1));
    buckets.take('idle');
    for (let at = 0; at < maxBuckets; at++) {
      buckets.take('busy');
      buckets.take(`invented ${at}`);
    }
    for (const [name, isAllowed] of [
      ['busy', false],
      [`invented ${maxBuckets - 1}`, false],
      ['idle', true],
      ['invented 0', true],
      ['invented 1', false],
    ] as const) {
      assert.equal(buckets.peek(name).isAllowed, isAllowed, name);
    }
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
  it('refuses bad tokens of an address that has failed too often, and accepts valid ones', async (t) => {
    const app = await startApp(t, { limits: { authFailures: perHour(3) } });
    const { call, token, user, storage } = app;
    const [known, fresh] = [await user('alice'), await user('bob')];
    const revoked = await token('alice');
    assert.equal((await known('GET', '/plants')).status, 200);
    assert.equal((await call('GET', '/plants', { token: revoked })).status, 200);
    await storage.identity.revokeToken(idOf(revoked), Date.now());
    const unknown = makeToken(1);
    for (let at = 0; at < 9; at++) assert.equal((await call('GET', '/plants')).status, 401);
    for (const bad of [revoked, unknown, 'no token'])
      assert.equal((await call('GET', '/plants', { token: bad })).status, 401);
    for (const bad of [revoked, unknown, 'no token', makeToken(1)]) {
      const refused = await call('GET', '/plants', { token: bad });
      assertLimited(refused, /Failed authentications from your address are limited to 3\/h/);
      assert.equal(refused.headers.get('www-authenticate'), null);
      const policy = ['failed-authentication', { q: 3, w: 3_600 }];
      assert.deepEqual(itemOf(refused, 'ratelimit-policy'), policy);
    }
    assert.equal((await known('GET', '/plants')).status, 200, 'a known token');
    assert.equal((await call('GET', '/plants')).status, 401, 'no token');
    assert.equal((await fresh('GET', '/plants')).status, 200, 'a new token');
    assert.equal((await callFrom(app, '127.0.0.2', 'bad')).status, 401, 'another address');
  });
});

describe('the limit on requests in progress', () => {
  it('refuses one more request of a token, and counts each until its response ends', async (t) => {
    const app = await startApp(t, { limits: { maxRequestsInProgress: 2 } });
    const token = await app.token('alice');
    const [alice, bob] = [app.as(token), await app.user('bob')];
    // Known tokens are admitted in the order of their requests.
    const { headers } = await alice('GET', '/plants');
    assert.deepEqual([headers.get('ratelimit'), headers.get('ratelimit-policy')], [null, null]);
    const [first, second] = [await begin(t, app, token), await begin(t, app, token)];
    const refused = await alice('GET', '/plants');
    assertLimited(refused, /^Requests in progress with this token are limited to 2\. /);
    const policy = ['in-progress', { q: 2, qu: 'concurrent-requests' }];
    assert.deepEqual(itemOf(refused, 'ratelimit-policy'), policy);
    assert.equal((await bob('GET', '/plants')).status, 200);

    first.write('{}');
    assert.equal((await first.answer())?.status, 400);
    assert.equal((await alice('GET', '/plants')).status, 200);
    second.socket.destroy();
    const third = await begin(t, app, token);
    await until('the aborted request has ended', async () => {
      return (await alice('GET', '/plants')).status === 200;
    });
    third.socket.destroy();
  });

  it('counts neither pipelined requests that wait nor those aborted before their token is known', async (t) => {
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
    const get = `GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const aborted = open(t, app);
    aborted.write(get);
    await identified.promise;
    aborted.socket.resetAndDestroy(); // closing only one side would let the service respond
    await disconnected.promise;
    const pipelined = open(t, app);
    pipelined.write(get.repeat(8));
    for (let at = 0; at < 8; at++) assert.equal((await pipelined.answer())?.status, 200);
  });
});

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
