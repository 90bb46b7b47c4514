/**
 * Where messages can be sent, and what is read of a response.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { createServer, type Socket } from 'node:net';
import { it, type TestContext } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import ipaddr from 'ipaddr.js';
import { blockListOf, lookupIn, openPost } from '../../src/webhooks/networks.ts';
import { messageOf } from '../../src/webhooks/webhook.ts';
import { makeCertificate } from '../support/certificate.ts';
import { startDns } from '../support/dns.ts';
import { listen } from '../support/listen.ts';
import { without } from '../support/programs.ts';
import { seededRandom } from '../support/random.ts';
import { accept, startReceiver } from '../support/receiver.ts';
import { tempFolder } from '../support/temp.ts';

/** Returns a function that sends a message to a URL, and returns what it has found. */
function openSend(...args: Parameters<typeof openPost>) {
  const post = openPost(...args);
  return async (url: string) => {
    const message = messageOf('webhook.test', 0, '{}');
    const { status, error, retryAfterMs } = await post({ url, secret: 'c2VjcmV0' }, message);
    return { result: error ?? String(status), retryAfterMs };
  };
}

const notAllowed = 'The operator does not allow this address.';

/** A server that does what it likes with a connection. */
async function startServer(t: TestContext, use: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {}); // the sender closes it
    use(socket);
    t.after(() => socket.destroy());
  });
  return `http://127.0.0.1:${await listen(t, server)}/`;
}

it('are only those that the operator allows, however an address is written', async (t) => {
  const receiver = await startReceiver(t);
  const { port } = new URL(receiver.url);
  const addresses = ['127.0.0.1'];
  const lookup = lookupIn(await startDns(t, addresses));
  const toPublic = openSend(['public'], lookup);
  const hosts = ['127.0.0.1', '127.1', '2130706433', '0x7f.1', '0', '[::1]', '[::ffff:127.0.0.1]'];
  for (const host of [...hosts, 'receiver.example']) {
    for (const scheme of ['http', 'https']) {
      const { result } = await toPublic(`${scheme}://${host}:${port}/`);
      assert.equal(result, notAllowed, `${scheme} ${host}`);
    }
  }
  assert.equal(receiver.received.length, 0);

  const toLocal = openSend(['127.0.0.0/8'], lookup);
  for (const host of ['127.0.0.1', '[::ffff:127.0.0.1]', 'receiver.example']) {
    const { result } = await toLocal(`http://${host}:${port}/`);
    assert.equal(result, '204', host);
  }
  addresses[0] = '10.0.0.1';
  const { result } = await toLocal(`http://receiver.example:${port}/`);
  assert.equal(result, notAllowed, 'the name has another address now');
});

it('that are public contain no address that ipaddr.js finds special', (t) => {
  const seed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now());
  const random = seededRandom(seed);
  t.diagnostic(`seed ${seed}`);
  const networks = blockListOf(['public']);
  for (const outside of ['4000::1', '::8.8.8.8', '1fff::1']) {
    assert.ok(networks.check(outside, 'ipv6'), outside); // not assigned
  }
  const bytes = (count: number) => Array.from({ length: count }, () => Math.floor(random() * 256));
  // Most random addresses are not in a small range, so some begin as its first and last addresses do.
  const starts = specialRanges();
  let blocked = 0;
  for (let round = 0; round < 200_000; round++) {
    const isIPv4 = round % 2 === 0;
    const any = bytes(isIPv4 ? 4 : 16);
    const like = starts[round % starts.length] ?? [];
    const kept = round % 3 === 0 && like.length === any.length ? 1 + Math.floor(random() * 16) : 0;
    const address = ipaddr.fromByteArray([...like.slice(0, kept), ...any.slice(kept)]);
    const inner = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress();
    const range = inner ? address.toIPv4Address().range() : address.range();
    const isBlocked = networks.check(address.toString(), isIPv4 ? 'ipv4' : 'ipv6');
    if (range !== 'unicast') assert.ok(isBlocked, `${address.toString()} is ${range}`);
    if (isBlocked) blocked++;
    else assert.equal(range, 'unicast');
  }
  t.diagnostic(`${blocked} of 200,000 are blocked`);
});

/** The first bytes of addresses that are special. */
function specialRanges(): number[][] {
  const texts =
    '0.0.0.0 10.0.0.0 100.64.0.0 127.0.0.1 169.254.169.254 172.16.0.0 192.0.0.0 192.168.0.0 198.18.0.0 224.0.0.0 240.0.0.0 ' +
    ':: ::1 ::ffff:10.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b:1:: 100:: 2001:: 2001:2:: 2001:db8:: 2002:7f00:1:: ' +
    '3fff:: 5f00:: fc00:: fe80::1 fec0:: ff02::1 2620:4f:8000::';
  return texts.split(' ').map((text) => ipaddr.parse(text).toByteArray());
}

it('are reached without redirects, and nothing of a body is read', async (t) => {
  const post = openSend(['127.0.0.0/8']);
  const [receiver, other] = [await startReceiver(t), await startReceiver(t)];
  receiver.respond = (_, response) => response.writeHead(302, { location: other.url }).end();
  assert.equal((await post(receiver.url)).result, '302');
  assert.deepEqual(other.received, []);

  let written = 0;
  const closed = Promise.withResolvers<void>();
  const endless = await startServer(t, (socket) => {
    socket.once('close', () => closed.resolve());
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    const write = () => {
      while (!socket.destroyed && socket.write(Buffer.alloc(65_536))) written += 65_536;
    };
    socket.on('drain', write);
    write();
  });
  assert.equal((await post(endless)).result, '200');
  await closed.promise;
  t.diagnostic(`the receiver has written ${written} bytes`);
  assert.ok(written < 20_000_000, `${written} bytes`);
});

it('can have receivers that do not speak HTTP', async (t) => {
  const post = openSend(['127.0.0.0/8']);
  for (const [response, expected] of [
    ['', /The connection failed \(ECONNRESET\)/],
    ['220 mail\r\n', /The connection failed \(HPE_\w+\)/],
    [
      `HTTP/1.1 200 OK\r\nA: ${'a'.repeat(100_000)}`,
      /The connection failed \(HPE_HEADER_OVERFLOW\)/,
    ],
    ['HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(16) + 'HTTP/1.1 200 OK\r\n\r\n', /^200$/],
    ['HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(17), /sent no response|ECONNRESET/],
    ['HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n', /./],
  ] as const) {
    const url = await startServer(t, (socket) => {
      socket.once('data', () => (response === '' ? socket.destroy() : socket.write(response)));
    });
    const { result } = await post(url);
    assert.match(result, expected);
    t.diagnostic(result);
  }
  const startedMs = performance.now();
  const silent = await startServer(t, () => {});
  const { result } = await post(silent);
  assert.match(result, /no response in 7 s/);
  assert.ok(performance.now() - startedMs < 7_500);
});

it('need a valid certificate for https', { skip: without('openssl') }, async (t) => {
  const { cert, key } = makeCertificate(tempFolder(t), 'receiver');
  const server = createTlsServer(
    { cert: readFileSync(cert), key: readFileSync(key) },
    (_, response) => accept(response),
  );
  const port = await listen(t, server);
  const post = openSend(['127.0.0.0/8'], lookupIn(await startDns(t, ['127.0.0.1'])));
  const to = async (host: string) => (await post(`https://${host}:${port}/`)).result;
  assert.match(await to('plants.example'), /DEPTH_ZERO_SELF_SIGNED_CERT/);
  const trusted = getCACertificates();
  t.after(() => setDefaultCACertificates(trusted));
  setDefaultCACertificates([...trusted, readFileSync(cert)]);
  assert.equal(await to('plants.example'), '204');
  assert.match(await to('other.example'), /ERR_TLS_CERT_ALTNAME_INVALID/);
});

it('can have names whose server ignores queries for IPv6', async (t) => {
  const { url } = await startReceiver(t);
  const post = openSend(['127.0.0.0/8'], lookupIn(await startDns(t, ['127.0.0.1'], false)));
  const startedMs = performance.now();
  const { result } = await post(url.replace('127.0.0.1', 'receiver.example'));
  assert.equal(result, '204');
  assert.ok(performance.now() - startedMs < 1_500, 'before the query has timed out');
});

it('are told when to send again', async (t) => {
  const post = openSend(['127.0.0.0/8']);
  const receiver = await startReceiver(t);
  const inAMinute = new Date(Date.now() + 60_000).toUTCString();
  for (const [value, min, max] of [
    ['120', 120_000, 120_000],
    [inAMinute, 58_000, 60_000],
    ['soon', 0, 0],
    ['-5', 0, 0],
  ] as const) {
    receiver.respond = (_, response) => response.writeHead(503, { 'retry-after': value }).end();
    const { retryAfterMs = 0 } = await post(receiver.url);
    assert.ok(retryAfterMs >= min && retryAfterMs <= max, `${value}: ${retryAfterMs}`);
  }
  receiver.respond = (_, response) => accept(response);
  assert.equal((await post(receiver.url)).retryAfterMs, 0);
});
