/**
 * Which requests have the same client. The service allows one failed authentication of each client, so the second one
 * shows it.
 */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { it, type TestContext } from 'node:test';
import { PassThrough } from 'node:stream';
import { pino } from 'pino';
import { TrustedProxies } from '../../src/http/auth/client-address.ts';
import { call, startApp } from '../support/app.ts';

const trusted = ['127.0.0.1', '10.0.0.0/8', '2001:db8:aaaa::/48'];

type Headers = Record<string, string>;

const xff = (value: string): Headers => ({ 'x-forwarded-for': value });
const forwarded = (value: string): Headers => ({ forwarded: value });

/** Asserts that the client of a request with each of `others` is the same as that of one with `first`. */
async function assertSame(
  t: TestContext,
  first: Headers,
  others: readonly Headers[],
  trustedProxies: readonly string[] = trusted,
): Promise<void> {
  const limits = { authFailures: { requests: 1, windowSeconds: 3_600 }, trustedProxies };
  const { address } = await startApp(t, { limits });
  assert.equal(await fail(address, first), 401);
  for (const other of others) assert.equal(await fail(address, other), 429, JSON.stringify(other));
}

/** Asserts that each of the requests has a client of its own. */
async function assertDifferent(t: TestContext, all: readonly Headers[]): Promise<void> {
  const limits = { authFailures: { requests: 1, windowSeconds: 3_600 }, trustedProxies: trusted };
  const { address } = await startApp(t, { limits });
  for (const each of all) assert.equal(await fail(address, each), 401, JSON.stringify(each));
}

async function fail(address: string, headers: Headers): Promise<number> {
  return (await call(`${address}/plants`, 'GET', { token: 'invalid', headers })).status;
}

it('the address of the connection is the client if no proxy is trusted', async (t) => {
  const others = [xff('192.0.2.1'), forwarded('for=192.0.2.2'), xff('192.0.2.3, 192.0.2.4')];
  await assertSame(t, {}, others, []);
  await assertSame(t, {}, others, ['192.0.2.0/24', '127.0.0.2']);
});

it('a trusted proxy names its client', async (t) => {
  await assertDifferent(t, [
    {},
    xff('192.0.2.1'),
    xff('192.0.2.2'),
    forwarded('for=192.0.2.3'),
    forwarded('for="[2001:db8::1]";proto=https'),
    xff('2001:db8:0:1::1'),
  ]);
});

it('the client is the address on the right that is not a trusted proxy', async (t) => {
  await assertSame(t, xff('192.0.2.1'), [
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

it('addresses of one IPv6 network are one client, also behind a proxy', async (t) => {
  await assertSame(t, xff('2001:db8::1'), [
    xff('2001:db8::ffff'),
    xff('[2001:db8::2]:4711'),
    forwarded('for="[2001:db8::3]:4711"'),
  ]);
});

it('an address is one client however it is written', async (t) => {
  await assertSame(t, xff('2001:db8:0:1::1'), [
    xff('2001:0DB8:0:1:0:0:0:2'),
    { ...xff('2001:db8:0:1::1'), ...forwarded('for="[2001:DB8::1:0:0:0:1]"') },
  ]);
  await assertSame(t, xff('192.0.2.1'), [xff('::ffff:192.0.2.1'), xff('::ffff:c000:201')]);
  const others = ['::ffff:c000:201', '::ffff:c000:202', '::ffff:1', '2001::ffff:1', 'fe80::1%eth0'];
  await assertDifferent(t, others.map(xff));
});

it('the client is the proxy if it names none, or the two headers disagree', async (t) => {
  await assertSame(t, {}, [
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

it('a header that fills the request costs no more than a short one', async () => {
  const proxies = new TrustedProxies(trusted);
  const cpuOf = (headers: Headers) => {
    const socket = new Socket();
    const request = new IncomingMessage(
      Object.defineProperty(socket, 'remoteAddress', { value: '127.0.0.1' }),
    );
    Object.assign(request.headers, headers);
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

it('no header of a proxy changes an address in a response', async (t) => {
  const { call: send, token } = await startApp(t, { limits: { trustedProxies: trusted } });
  const alice = await token('alice');
  const headers = {
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'gopher',
    'x-forwarded-prefix': '/evil',
    forwarded: 'for=192.0.2.1;host=evil.example;proto=gopher',
  };
  const create = () =>
    send('POST', '/plants?fields=id', { token: alice, json: { name: 'Ficus' }, headers });
  assert.equal((await create()).headers.get('location'), '/plants/1');
  await create();
  const { headers: found } = await send('GET', '/plants?limit=1', { token: alice, headers });
  assert.equal(found.get('link'), '</plants?limit=1&after=1>; rel="next"');
});

it('the log names --trust-proxy once if the clients of a proxy share the limit', async (t) => {
  const lines = new PassThrough();
  const limits = { authFailures: { requests: 1, windowSeconds: 3_600 } };
  const { address } = await startApp(t, { limits, log: pino(lines) });
  for (let at = 0; at < 5; at++) await fail(address, {});
  assert.doesNotMatch(String(lines.read()), /--trust-proxy/);
  for (let at = 0; at < 5; at++) await fail(address, xff('192.0.2.1'));
  assert.match(String(lines.read()), /^\{[^\n]*--trust-proxy[^\n]*\}\n$/);
});
