/**
 * Greedy clients for longer, with figures: run it on a quiet machine to quote them.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { requestTimeoutMs } from '../../src/http/limits.ts';
import { call } from '../support/app.ts';
import { Connection } from '../support/connection.ts';
import { until } from '../support/until.ts';
import {
  besiege,
  lay,
  listRequest,
  maxMemoryMiB,
  residentMiB,
  sieges,
  watchWhile,
} from './greedy.ts';

const watchMs = 8_000;
/** Generous, because the machine can have other work. */
const maxLivezP99Ms = 500;

for (const heapMiB of [undefined, 256]) {
  for (const [what, siege] of Object.entries(sieges)) {
    const heap = heapMiB === undefined ? '' : `, on a heap of ${heapMiB} MB`;
    it(`keeps serving others while ${what}${heap}`, async (t) => {
      const besieged = await besiege(t, 10_000, heapMiB === undefined ? {} : { heapMiB });
      const seen = await watchWhile(besieged, () => lay(besieged, siege), watchMs);
      t.diagnostic(JSON.stringify(seen));
      assert.ok(seen.aboveIdleMiB <= maxMemoryMiB, `${seen.aboveIdleMiB} MiB above idle`);
      assert.ok(seen.livezP99Ms < maxLivezP99Ms, `${seen.livezP99Ms} ms`);
    });
  }
}

it('serves others while clients read long pages as fast as they can', async (t) => {
  const besieged = await besiege(t, 10_000);
  const attack = async () => {
    const endMs = performance.now() + watchMs;
    const read = async () => {
      while (performance.now() < endMs) {
        const socket = (await besieged.open()).resume();
        socket.write(listRequest(besieged.greedy, '/plants?limit=1000').repeat(600));
        await once(socket, 'close');
      }
    };
    await Promise.all(Array.from({ length: 8 }, read));
  };
  const seen = await watchWhile(besieged, attack, watchMs);
  t.diagnostic(JSON.stringify(seen));
  assert.ok(seen.livezP99Ms < maxLivezP99Ms, `${seen.livezP99Ms} ms`);
});

it('serves others during pipelined whole lists, with 1,000,000 plants', async (t) => {
  const besieged = await besiege(t, 1_000_000);
  const long = listRequest(besieged.greedy, '/plants?fields=id');
  const bytes = () => long.repeat(9);
  const seen = await watchWhile(besieged, () => lay(besieged, { connections: 8, bytes }), watchMs);
  t.diagnostic(JSON.stringify(seen));
  assert.ok(seen.livezP99Ms < maxLivezP99Ms, `${seen.livezP99Ms} ms`);
  assert.ok(seen.aboveIdleMiB <= maxMemoryMiB, `${seen.aboveIdleMiB} MiB above idle`);
});

it('holds 10,000 idle connections in at most 20 KiB each', async (t) => {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  const maxFiles = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1]);
  if (maxFiles < 11_000) return t.skip(`this shell can open ${maxFiles} files; 11,000 are needed`);
  const { service, other, open } = await besiege(t, 0);
  const known = { token: other };
  for (let round = 0; round < 200; round++) await call(`${service.address}/plants`, 'GET', known);
  const beforeMiB = residentMiB(service);
  const connections = 9_800; // in addition to those of call()
  let answered = 0;
  for (let at = 0; at < connections; at += 100) {
    const some = await Promise.all(Array.from({ length: 100 }, open));
    for (const socket of some) {
      socket.once('data', () => answered++).resume();
      if (at % 200 === 0) socket.write(listRequest(other)); // half of them have been used before
    }
  }
  await until('every request has its response', () => answered === connections / 2, 60_000);
  const eachKiB = ((residentMiB(service) - beforeMiB) * 1024) / connections;
  t.diagnostic(`${eachKiB.toFixed(1)} KiB each`);
  assert.ok(eachKiB <= 20, `${eachKiB} KiB each`);
  assert.equal((await call(`${service.address}/plants`, 'GET', known)).status, 200);
});

for (const [what, begun] of [
  ['header', 'POST /plants HTTP/1.1\r\nHost: x\r\nX-Slow: '],
  ['body', 'POST /plants HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'],
] as const) {
  it(`refuses an incomplete ${what} after 30 to 32 seconds`, async (t) => {
    const { other, open } = await besiege(t, 0);
    const socket = await open();
    const startedMs = performance.now();
    const authorization = `Authorization: Bearer ${other}\r\n`;
    socket.write(what === 'body' ? `${begun}${authorization}Content-Length: 1000\r\n\r\n` : begun);
    const drip = setInterval(() => socket.write('1'), 500);
    t.after(() => clearInterval(drip));
    let received = '';
    socket.setEncoding('latin1').on('data', (text) => (received += String(text)));
    socket.resume();
    await once(socket, 'end');
    const tookMs = performance.now() - startedMs;
    t.diagnostic(`${Math.round(tookMs)} ms`);
    assert.match(received, /^HTTP\/1\.1 408 /);
    assert.ok(tookMs > requestTimeoutMs - 100 && tookMs < requestTimeoutMs + 2_000, `${tookMs} ms`);
  });
}

it('sends complete lists if CONNECT follows them', async (t) => {
  const plants = 10_000;
  const { service, greedy } = await besiege(t, plants);
  const connection = new Connection(service.address);
  t.after(() => connection.socket.destroy());
  const lists = 2;
  connection.write(
    listRequest(greedy).repeat(lists) + 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n',
  );
  await once(connection.socket, 'readable');
  await pause(500); // until the buffers of the system are full
  for (let at = 0; at < lists; at++) {
    const answer = await connection.answer();
    assert.ok(JSON.parse(answer?.body ?? '[]').length >= plants, `list ${at + 1}`);
  }
  assert.equal((await connection.answer())?.status, 405);
  assert.equal(await connection.answer(), undefined);
});
