/**
 * Who is the client of a request, for limits: src/http/auth/client-address.ts.
 */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { it } from 'node:test';
import { pino } from 'pino';
import { TrustedProxies } from '../../src/http/auth/client-address.ts';
import { startApp } from '../support/app.ts';

const trusted = ['127.0.0.1', '10.0.0.0/8', '2001:db8:aaaa::/48'];

type Headers = Record<string, string>;

const xff = (value: string): Headers => ({ 'x-forwarded-for': value });
const forwarded = (value: string): Headers => ({ forwarded: value });

function requestWith(headers: Headers): IncomingMessage {
  const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: '127.0.0.1' });
  return Object.assign(new IncomingMessage(socket), { headers });
}

/** The client of a request from 127.0.0.1 with these headers. */
function clientOf(headers: Headers, proxies: readonly string[] = trusted): string {
  return new TrustedProxies(proxies).clientOf(requestWith(headers));
}

/** Asserts that the client of requests with each of `others` is the same as that of one with `first`. */
function assertSame(first: Headers, others: readonly Headers[]): void {
  for (const other of others) assert.equal(clientOf(other), clientOf(first), JSON.stringify(other));
}

/** Asserts that each of the requests has a client of its own. */
function assertDifferent(all: readonly Headers[]): void {
  assert.equal(new Set(all.map((headers) => clientOf(headers))).size, all.length);
}

it('the address of the connection is the client if no proxy is trusted', () => {
  const others = [xff('192.0.2.1'), forwarded('for=192.0.2.2'), xff('192.0.2.3, 192.0.2.4')];
  for (const headers of others) {
    for (const proxies of [[], ['192.0.2.0/24', '127.0.0.2']])
      assert.equal(clientOf(headers, proxies), '127.0.0.1');
  }
});

it('a trusted proxy names its client', () => {
  assertDifferent([
    {},
    xff('192.0.2.1'),
    xff('192.0.2.2'),
    forwarded('for=192.0.2.3'),
    forwarded('for="[2001:db8::1]";proto=https'),
    xff('2001:db8:0:1::1'),
  ]);
});

it('the client is the address on the right that is not a trusted proxy', () => {
  assertSame(xff('192.0.2.1'), [
    xff('198.51.100.7, 192.0.2.1'),
    xff('127.0.0.1, 10.0.0.1, 192.0.2.1'),
    xff('garbage, 192.0.2.1, 10.1.2.3'),
    xff('192.0.2.1,10.1.2.3,2001:db8:aaaa::1'),
    xff(`${'198.51.100.7, '.repeat(900)}192.0.2.1`),
    xff('192.0.2.1:4711'),
    forwarded('for=192.0.2.1'),
    forwarded('for=198.51.100.7, for=192.0.2.1'),
    forwarded('For="192.0.2.1:4711";by=_hidden, for=10.0.0.1'),
    forwarded('for="unterminated, for=192.0.2.1'),
    { ...xff('192.0.2.1'), ...forwarded('for=192.0.2.1') },
    { ...xff('192.0.2.1'), ...forwarded('garbage') },
  ]);
});

it('addresses of one IPv6 network are one client, also behind a proxy', () => {
  assertSame(xff('2001:db8::1'), [
    xff('2001:db8::ffff'),
    xff('2001:db8:0:0:ffff:ffff:ffff:ffff'),
    xff('[2001:db8::2]:4711'),
    forwarded('for="[2001:db8::3]:4711"'),
  ]);
});

it('an address is one client however it is written', () => {
  assertSame(xff('2001:db8:0:1::1'), [
    xff('2001:0DB8:0:1:0:0:0:2'),
    { ...xff('2001:db8:0:1::1'), ...forwarded('for="[2001:DB8::1:0:0:0:1]"') },
  ]);
  assertSame(xff('192.0.2.1'), [xff('::ffff:192.0.2.1'), xff('::ffff:c000:201')]);
  const others = ['::ffff:c000:201', '::ffff:c000:202', '::ffff:1', '2001::ffff:1', 'fe80::1%eth0'];
  assertDifferent(others.map(xff));
});

it('the client is the proxy if it names none, or the two headers disagree', () => {
  assertSame({}, [
    xff(''),
    xff('garbage'),
    xff('192.0.2.1, unknown'),
    xff('192.0.2.1, 192.0.2.256'),
    xff(','.repeat(5_000)),
    forwarded('for=unknown'),
    forwarded('for=192.0.2.1, for=_hidden'),
    forwarded('proto=https'),
    forwarded('for=192.0.2.1;for=192.0.2.2'),
    forwarded('for=192.0.2.1;host="a'),
    forwarded('for=2001:db8::1'),
    // The client has sent this host, and the proxy quotes it.
    forwarded('for=unknown;host="a, for=192.0.2.1"'),
    { ...xff('192.0.2.1'), ...forwarded('for=192.0.2.2') },
  ]);
});

it('a header that fills the request costs no more than a short one', () => {
  const proxies = new TrustedProxies(trusted);
  const cpuOf = (headers: Headers) => {
    const request = requestWith(headers);
    const before = process.cpuUsage();
    for (let round = 0; round < 2_000; round++) proxies.clientOf(request);
    return process.cpuUsage(before).user;
  };
  const short = Math.max(cpuOf(xff('192.0.2.1')), cpuOf(xff('192.0.2.1')));
  for (const header of [xff(','.repeat(15_600)), forwarded(','.repeat(15_600))]) {
    const long = cpuOf(header);
    assert.ok(long < 10 * short, `${long} instead of ${short} us`);
  }
});

it('a proxy names the client of a limit, and changes no address in a response', async (t) => {
  const limits = { authFailures: { requests: 1, windowSeconds: 3_600 }, trustedProxies: trusted };
  const { call, user } = await startApp(t, { limits });
  for (const [headers, status] of [
    [xff('192.0.2.1'), 401],
    [xff('192.0.2.2'), 401],
    [forwarded('for=192.0.2.1'), 429],
    [{}, 401],
  ] as const) {
    const refused = await call('GET', '/plants', { token: 'invalid', headers });
    assert.equal(refused.status, status);
  }
  const alice = await user('alice');
  const headers = {
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'gopher',
    'x-forwarded-prefix': '/evil',
    forwarded: 'for=192.0.2.1;host=evil.example;proto=gopher',
  };
  const create = () => alice('POST', '/plants', { json: { name: 'Ficus' }, headers });
  assert.equal((await create()).headers.get('location'), '/plants/1');
  await create();
  const page = await alice('GET', '/plants?limit=1', { headers });
  assert.equal(page.headers.get('link'), '</plants?limit=1&after=1>; rel="next"');
});

it('the log names --trust-proxy once if the clients of a proxy share the limit', async (t) => {
  const lines = new PassThrough();
  const limits = { authFailures: { requests: 1, windowSeconds: 3_600 } };
  const { call } = await startApp(t, { limits, log: pino(lines) });
  const fail = async (headers: Headers) => {
    for (let at = 0; at < 5; at++) await call('GET', '/plants', { token: 'invalid', headers });
    return String(lines.read());
  };
  assert.doesNotMatch(await fail({}), /--trust-proxy/);
  assert.match(await fail(xff('192.0.2.1')), /^\{[^\n]*--trust-proxy[^\n]*\}\n$/);
});
