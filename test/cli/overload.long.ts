/**
 * Clients that use too much of the service, and what others see of them. Run it on a quiet machine to quote figures.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';
import { it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { requestTimeoutMs } from '../../src/http/limits.ts';
import { call } from '../support/app.ts';
import type { Service } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { Flood } from '../support/flood.ts';
import { quantile } from '../support/paced-load.ts';
import { until } from '../support/until.ts';
import { listRequest, startTarget, type Target } from './overload.ts';

const watchMs = 8_000;
/** Generous, because the machine can have other work. */
const maxLivezP99Ms = 500;

interface Load {
  connections: number;
  /** The bytes that each connection sends, without ever reading. */
  bytes: (token: string) => string;
}

const loads: Record<string, Load> = {
  'eight connections request 600 pages at once': {
    connections: 8,
    bytes: (token) => listRequest(token, '/plants?limit=1000').repeat(600),
  },
  '40 connections request the whole list': { connections: 40, bytes: listRequest },
  '2,500 connections request the whole list': { connections: 2_500, bytes: listRequest },
  '200 connections request the reference page 300 times': {
    connections: 200,
    bytes: () => 'GET /docs HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(300),
  },
};

async function apply(target: Target, { connections, bytes }: Load): Promise<void> {
  const text = bytes(target.greedy);
  // Some at a time, because this process also measures how long others wait. Then all ask at once.
  const together = 10;
  const sockets: Socket[] = [];
  while (sockets.length < connections) {
    const some = Array.from(
      { length: Math.min(together, connections - sockets.length) },
      target.open,
    );
    sockets.push(...(await Promise.all(some)));
  }
  for (const socket of sockets) socket.write(text);
}

/** Above idle. Much of it is garbage that V8 has not collected, so it differs by 40 MiB from run to run. */
const maxMemoryMiB = 200;

for (const heapMiB of [undefined, 256]) {
  for (const [what, load] of Object.entries(loads)) {
    const heap = heapMiB === undefined ? '' : `, on a heap of ${heapMiB} MB`;
    it(`keeps serving others while ${what}${heap}`, async (t) => {
      const target = await startTarget(t, 10_000, heapMiB === undefined ? {} : { heapMiB });
      const seen = await watchWhile(target, () => apply(target, load));
      t.diagnostic(JSON.stringify(seen));
      assert.ok(seen.aboveIdleMiB <= maxMemoryMiB, `${seen.aboveIdleMiB} MiB above idle`);
      assert.ok(seen.livezP99Ms < maxLivezP99Ms, `${seen.livezP99Ms} ms`);
    });
  }
}

/** Other clients: known and unknown ones on connections that they keep, and others who connect all the time. */
const mixes = [
  { callers: 128, strangers: 300 },
  { callers: 128, strangers: 300, path: '/plants?limit=1000' },
  { callers: 512, strangers: 0, path: '/tokens' },
  { callers: 2_000, strangers: 0 },
  { callers: 0, strangers: 2_000, path: `/plants?${'p=1234567&'.repeat(60)}`, reconnecting: 500 },
  { callers: 2_000, strangers: 2_000, workers: 2 },
];

for (const mix of mixes) {
  const { callers, strangers, path = '/plants?limit=20', reconnecting = 0, workers = 1 } = mix;
  const others = `${callers} callers and ${strangers} strangers`;
  it(`serves a new client during ${path.slice(0, 20)} of ${others}`, async (t) => {
    const target = await startTarget(t, 1_000, { args: ['--workers', String(workers)] });
    const quiet = await medians(target);
    const port = Number(new URL(target.service.address).port);
    const flood = { port, localAddress: '127.0.0.2', depth: 1, target: path };
    if (callers > 0) await Flood.start(t, { ...flood, connections: callers, token: target.greedy });
    if (strangers > 0) await Flood.start(t, { ...flood, connections: strangers, reconnecting });
    const seen = await medians(target);
    t.diagnostic(JSON.stringify({ quiet, seen }));
    assert.ok(seen.livezMs < 10 * Math.max(quiet.livezMs, 2), `${seen.livezMs} ms`);
    assert.ok(seen.pageMs < 10 * Math.max(quiet.pageMs, 1), `${seen.pageMs} ms`);
  });
}

/** The times of /livez on a new connection, and of another user's page on a kept one. */
async function medians({ service, other }: Target) {
  const kept = new Connection(service.address);
  const ask = async (connection: Connection, bytes: string) => {
    const startedMs = performance.now();
    connection.write(bytes);
    assert.equal((await connection.answer())?.status, 200);
    return performance.now() - startedMs;
  };
  const [livez, page]: [number[], number[]] = [[], []];
  for (const endMs = performance.now() + watchMs / 4; performance.now() < endMs; await pause(5)) {
    const connection = new Connection(service.address);
    livez.push(await ask(connection, 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'));
    connection.socket.destroy();
    page.push(await ask(kept, listRequest(other, '/plants?limit=20')));
  }
  kept.socket.destroy();
  return { livezMs: quantile(livez, 0.5), pageMs: quantile(page, 0.5) };
}

it('serves others while clients read long pages as fast as they can', async (t) => {
  const target = await startTarget(t, 10_000);
  const attack = async () => {
    const endMs = performance.now() + watchMs;
    const read = async () => {
      while (performance.now() < endMs) {
        const socket = (await target.open()).resume();
        socket.write(listRequest(target.greedy, '/plants?limit=1000').repeat(600));
        await once(socket, 'close');
      }
    };
    await Promise.all(Array.from({ length: 8 }, read));
  };
  const seen = await watchWhile(target, attack);
  t.diagnostic(JSON.stringify(seen));
  assert.ok(seen.livezP99Ms < maxLivezP99Ms, `${seen.livezP99Ms} ms`);
});

it('serves others during pipelined whole lists, with 1,000,000 plants', async (t) => {
  const target = await startTarget(t, 1_000_000);
  const long = listRequest(target.greedy, '/plants?fields=id');
  const bytes = () => long.repeat(9);
  const seen = await watchWhile(target, () => apply(target, { connections: 8, bytes }));
  t.diagnostic(JSON.stringify(seen));
  assert.ok(seen.livezP99Ms < maxLivezP99Ms, `${seen.livezP99Ms} ms`);
  assert.ok(seen.aboveIdleMiB <= maxMemoryMiB, `${seen.aboveIdleMiB} MiB above idle`);
});

it('holds 10,000 idle connections in at most 20 KiB each', async (t) => {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  const maxFiles = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1]);
  if (maxFiles < 11_000) return t.skip(`this shell can open ${maxFiles} files; 11,000 are needed`);
  const { service, other, open } = await startTarget(t, 0);
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
    const { other, open } = await startTarget(t, 0);
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
  const { service, greedy } = await startTarget(t, plants);
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

interface Seen {
  /** The peak memory of the process above its idle memory. */
  aboveIdleMiB: number;
  livezP99Ms: number;
  /** Of the first page of another user: before, and meanwhile. */
  quietP99Ms: number;
  pageP99Ms: number;
  answers: number;
}

/** Measures the service for a while, then again during the attack. */
async function watchWhile({ service, other }: Target, attack: () => Promise<void>): Promise<Seen> {
  const agent = new Agent({ keepAlive: true, maxSockets: 2 });
  const ask = async (path: string) => {
    const startedMs = performance.now();
    const headers = { authorization: `Bearer ${other}` };
    const sent = request(service.address + path, { agent, headers }).end();
    const [response] = await once(sent, 'response', { signal: AbortSignal.timeout(10_000) });
    response.resume();
    await once(response, 'end');
    assert.equal(response.statusCode, 200, path);
    return performance.now() - startedMs;
  };
  const measure = async (isRunning: () => boolean) => {
    const [livez, page]: number[][] = [[], []];
    let peakMiB = 0;
    while (isRunning()) {
      livez?.push(await ask('/livez'));
      page?.push(await ask('/plants?limit=20'));
      peakMiB = Math.max(peakMiB, residentMiB(service));
      await pause(5);
    }
    return { livez: livez ?? [], page: page ?? [], peakMiB };
  };
  const after = (ms: number) => {
    const endMs = performance.now() + ms;
    return () => performance.now() < endMs;
  };
  const quiet = await measure(after(Math.min(watchMs, 1_000)));
  let isAttacking = true;
  const isWatching = after(watchMs);
  const [seen] = await Promise.all([
    measure(() => isAttacking || isWatching()),
    attack().finally(() => (isAttacking = false)),
  ]);
  agent.destroy();
  return {
    aboveIdleMiB: Math.round(seen.peakMiB - quiet.peakMiB),
    livezP99Ms: quantile(seen.livez, 0.99),
    quietP99Ms: quantile(quiet.page, 0.99),
    pageP99Ms: quantile(seen.page, 0.99),
    answers: seen.livez.length,
  };
}

function residentMiB({ child }: Service): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}
