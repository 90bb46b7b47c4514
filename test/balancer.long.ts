/**
 * HAProxy as set up in docs/how-to/replicas.md, while thousands of connections send requests that never become
 * complete.
 */
import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { balance, noBalancer as skip } from './support/balancer.ts';
import type { Service } from './support/command.ts';
import { exchange, request } from './support/raw.ts';
import { startService } from './support/service.ts';
import { partialRequests, startSlowClients, type SlowClients } from './support/slow-clients.ts';
import { until, untilCount } from './support/until.ts';

/** Enough to exhaust a balancer that accepts 4,000 connections and has no timeout for a whole request. */
const slowConnections = 4_100;
const responseTimeoutMs = 2_000;

it(
  '4,100 dripping connections that reconnect are dropped, and new clients get responses',
  { skip },
  async (t) => {
    const { answered, slowestMs, slow } = await keepsAnswering(t);
    assert.match(slow.lastResponse(), /^HTTP\/1\.1 408 /);
    t.diagnostic(`${answered} new clients answered, the slowest within ${slowestMs.toFixed(0)} ms`);
  },
);

it('one address cannot take every connection from the others', { skip }, async (t) => {
  const { service } = await startService(t);
  const port = Number(new URL(await balance(t, [service.address])).port);
  const open = new Set<Socket>();
  t.after(() => open.forEach((socket) => socket.destroy()));
  let refused = 0;
  for (let count = 0; count < 8_500; count++) {
    const socket = connect({ host: '127.0.0.1', port, localAddress: '127.0.0.2' });
    open.add(socket);
    socket.on('error', () => {}); // shows as `close`
    socket.once('close', () => {
      open.delete(socket);
      refused++;
    });
    socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n');
    if (count % 100 === 0) await until('it has connected', () => !socket.connecting);
  }
  await untilCount('refused connections', 2_500, () => refused);
  assert.equal(open.size, 6_000);
  assert.match(await exchange(port, request('GET /livez', ['Host: x'])), /^HTTP\/1\.1 200 /);
});

/** Opens the slow connections, and sends requests as a new client until all were dropped three times. */
async function keepsAnswering(
  t: TestContext,
): Promise<{ answered: number; slowestMs: number; slow: SlowClients }> {
  const { service, token } = await startService(t, { plants: 1 });
  const port = Number(new URL(await balance(t, [service.address])).port);
  const get = request('GET /plants?fields=id', ['Host: x', `Authorization: Bearer ${token}`]);
  const slow = startSlowClients(t, port, partialRequests(slowConnections));
  await untilCount('connections', slowConnections, () => slow.open());

  let answered = 0;
  let slowestMs = 0;
  while (slow.drops() < 3) {
    const startedMs = performance.now();
    const timeout = pause(responseTimeoutMs, 'no response in time', { ref: false });
    const response = await Promise.race([exchange(port, get), timeout]);
    assert.match(response, /^HTTP\/1\.1 200 [^]*\[\{"id":1\}\]/);
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
    answered++;
    assert.ok(socketsOf(service) < 100, 'slow connections stay with the balancer');
  }
  return { answered, slowestMs, slow };
}

/** The open sockets of the service's process, as Linux lists them. */
function socketsOf({ child }: Service): number {
  const folder = `/proc/${child.pid}/fd`;
  const targets = readdirSync(folder).map((descriptor) => {
    try {
      return readlinkSync(join(folder, descriptor));
    } catch {
      return 'closed meanwhile';
    }
  });
  return targets.filter((target) => target.startsWith('socket:')).length;
}
