import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { it } from 'node:test';
import { keepsAnswering } from './balancer.ts';
import { balance, noBalancer as skip } from './support/balancer.ts';
import { serve } from './support/command.ts';
import { databaseFile, fill } from './support/database.ts';
import { exchange, request } from './support/raw.ts';
import { until } from './support/until.ts';

it(
  '4,100 dripping connections that reconnect are dropped, and new clients get responses',
  { skip },
  async (t) => {
    const { answered, slowestMs, slow } = await keepsAnswering(
      t,
      (clients) => clients.drops() === 3,
    );
    assert.match(slow.lastResponse(), /^HTTP\/1\.1 408 /);
    t.diagnostic(`${answered} new clients answered, the slowest within ${slowestMs.toFixed(0)} ms`);
  },
);

it('one address cannot take every connection from the others', { skip }, async (t) => {
  const { path, url } = databaseFile(t);
  await fill(path, 0);
  const { address } = await serve(t, ['--database', url]);
  const port = Number(new URL(await balance(t, [address])).port);
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
  await until('excess connections are refused', () => refused === 2_500);
  assert.equal(open.size, 6_000);
  assert.match(await exchange(port, request('GET /livez', ['Host: x'])), /^HTTP\/1\.1 200 /);
});
