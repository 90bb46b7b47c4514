/**
 * Receivers that do what they can to harm the service: its memory stays flat, it reaches nothing that it must not, and
 * another receiver gets each change within a second.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { startApp } from '../support/app.ts';
import { startDns } from '../support/dns.ts';
import { startReceiver } from '../support/receiver.ts';
import { it } from '../support/storages.ts';

const rounds = 12;
/** The first ones fill caches and buffers. */
const warmUpRounds = 4;
const attackers = 15;

/** What a receiver does with a connection once a request has begun. */
const attacks: Record<string, (socket: Socket) => void> = {
  'redirects to the metadata of a cloud': (socket) =>
    socket.end('HTTP/1.1 307 Moved\r\nLocation: http://169.254.169.254/latest/\r\n\r\n'),
  'is silent': () => {},
  'sends a byte of a header a second': (socket) => {
    const timer = setInterval(() => socket.write('a'), 1_000);
    socket.once('close', () => clearInterval(timer));
    socket.write('HTTP/1.1 200 OK\r\nA: ');
  },
  'sends headers without end': (socket) => flood(socket, 'HTTP/1.1 200 OK\r\n', 'A: b\r\n'),
  'sends a body without end': (socket) => flood(socket, 'HTTP/1.1 500 Oh\r\n\r\n', 'aaaaaaaa'),
  'sends interim responses without end': (socket) =>
    flood(socket, '', 'HTTP/1.1 102 Processing\r\n\r\n'),
  'closes the connection': (socket) => socket.destroy(),
};

function flood(socket: Socket, first: string, more: string): void {
  const chunk = more.repeat(65_536 / more.length);
  const write = () => {
    while (socket.writable && socket.write(chunk));
  };
  socket.on('drain', write);
  socket.write(first);
  write();
}

async function startAttacker(t: TestContext, attack: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {}); // the sender closes it
    socket.once('data', () => attack(socket));
    t.after(() => socket.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port; // it listens on a port
}

it('hostile receivers cost neither memory nor the time of others', async (t) => {
  // One of the addresses is not allowed, so each attempt fails or gets another one.
  const resolver = await startDns(t, ['10.0.0.1', '127.0.0.1']);
  const app = await startApp(t, { webhookNetworks: ['127.0.0.0/8'], resolver });
  const alice = await app.user('alice', { scopes, role: 'manager' });
  const good = await startReceiver(t);
  assert.equal((await alice('POST', '/webhooks', { json: { url: good.url } })).status, 201);
  const ports = await Promise.all(Object.values(attacks).map((attack) => startAttacker(t, attack)));
  const urls = [
    ...ports.map((port) => `http://127.0.0.1:${port}/`),
    `http://rebinding.example:${ports[0]}/`,
    'http://127.0.0.1:1/',
    'http://169.254.169.254/latest/meta-data/',
  ];
  for (let at = 0; at < attackers; at++) {
    const mallory = await app.user(`mallory ${at}`, { scopes, role: 'manager' });
    for (const url of urls) {
      assert.equal((await mallory('POST', '/webhooks', { json: { url } })).status, 201);
    }
  }

  let [plants, slowestMs, before] = [0, 0, 0];
  const used: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await app.database.run('UPDATE webhooks SET due_at = 1 WHERE sent = -1');
    const endMs = performance.now() + 8_000; // longer than an attempt
    while (performance.now() < endMs) {
      const startedMs = performance.now();
      assert.equal((await alice('POST', '/plants', { json: { name: 'Fern' } })).status, 201);
      await good.untilPlant(++plants);
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
    }
    globalThis.gc?.();
    const { rss } = process.memoryUsage();
    used.push(Math.round(rss / 1_048_576));
    if (round === warmUpRounds) before = rss;
  }
  t.diagnostic(
    `${plants} plants, the slowest after ${Math.round(slowestMs)} ms; MiB: ${used.join()}`,
  );
  assert.ok(slowestMs < 1_000, `${slowestMs} ms`);
  const grownMiB = (process.memoryUsage().rss - before) / 1_048_576;
  assert.ok(grownMiB < 30, `${grownMiB} MiB more`);
  const mallory = await app.user('mallory 0', { scopes });
  const { json } = await mallory('GET', '/webhooks');
  const shown = json as { url: string; state: string; error?: string; status?: number }[];
  for (const { url, state, error, status } of shown) {
    t.diagnostic(`${url} ${state} ${status ?? error}`);
    assert.equal(state, 'failing');
  }
});
