/**
 * Clients that use too much of the service, and what others see of them. Run it on a quiet machine to quote figures.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Service } from '../support/command.ts';
import type { Connection } from '../support/connection.ts';
import { Flood } from '../support/flood.ts';
import { quantile } from '../support/paced-load.ts';
import { livez, startService, statusOf, type Started } from '../support/service.ts';
import { untilCount } from '../support/until.ts';

const watchMs = 5_000;
const quietMs = 1_000;
/** Generous, because the machine can have other work. */
const maxLivezP99Ms = 500;
/** Above idle. Much of it is garbage that V8 has not collected, so it differs by 40 MiB from run to run. */
const maxMemoryMiB = 200;

interface Load {
  connections: number;
  /** The bytes that each connection sends, without ever reading. */
  bytes: (request: Started['request']) => string;
}

const loads: Record<string, Load> = {
  'eight connections request 600 pages at once': {
    connections: 8,
    bytes: (request) => request('GET /plants?limit=1000').repeat(600),
  },
  '40 connections request the whole list': {
    connections: 40,
    bytes: (request) => request('GET /plants'),
  },
  '2,500 connections request the whole list': {
    connections: 2_500,
    bytes: (request) => request('GET /plants'),
  },
  '200 connections request the reference page 300 times': {
    connections: 200,
    bytes: () => 'GET /docs HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(300),
  },
};

for (const [what, load] of Object.entries(loads)) {
  it(`keeps serving others while ${what}`, async (t) => {
    const target = await start(t, { plants: 10_000 });
    assertPrompt(await watchDuring(t, target, () => apply(target, load)));
  });
}

it('keeps serving others on a heap of 256 MB while all of that happens at once', async (t) => {
  const env = { NODE_OPTIONS: '--max-old-space-size=256' };
  const target = await start(t, { plants: 10_000, env });
  const attack = async () => {
    for (const load of Object.values(loads)) await apply(target, load);
  };
  await watchDuring(t, target, attack);
});

it('serves others while clients read long pages as fast as they can', async (t) => {
  const target = await start(t, { plants: 10_000 });
  const pages = target.request('GET /plants?limit=1000').repeat(600);
  const endMs = performance.now() + watchMs;
  const read = async () => {
    while (performance.now() < endMs) {
      const socket = (await target.openUnread()).resume();
      socket.write(pages);
      await once(socket, 'close');
    }
  };
  assertPrompt(await watchDuring(t, target, () => Promise.all(Array.from({ length: 8 }, read))));
});

it('serves others during pipelined whole lists, with 300,000 plants', async (t) => {
  const target = await start(t, { plants: 300_000 });
  const bytes = () => target.request('GET /plants?fields=id').repeat(9);
  assertPrompt(await watchDuring(t, target, () => apply(target, { connections: 8, bytes })));
});

/** Other clients: known and unknown ones on connections that they keep, and others who connect all the time. */
const mixes = [
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
    const target = await start(t, { plants: 1_000, args: ['--workers', String(workers)] });
    const quiet = await watch(target, lasting(quietMs));
    const { port, token } = target;
    const flood = { port, localAddress: '127.0.0.2', depth: 1, target: path };
    if (callers > 0) await Flood.start(t, { ...flood, connections: callers, token });
    if (strangers > 0) await Flood.start(t, { ...flood, connections: strangers, reconnecting });
    const seen = await watch(target, lasting(quietMs));
    const median = (values: readonly number[]) => quantile(values, 0.5);
    const [livezMs, pageMs] = [median(seen.livezMs), median(seen.pageMs)];
    t.diagnostic(`livez ${livezMs} ms, page ${pageMs} ms`);
    assert.ok(livezMs < 10 * Math.max(median(quiet.livezMs), 4), `${livezMs} ms`);
    assert.ok(pageMs < 10 * Math.max(median(quiet.pageMs), 1), `${pageMs} ms`);
  });
}

it('holds 10,000 idle connections in at most 20 KiB each', async (t) => {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  const maxFiles = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1]);
  if (maxFiles < 11_000) return t.skip(`this shell can open ${maxFiles} files; 11,000 are needed`);
  const { service, open, openUnread, request } = await start(t);
  const list = request('GET /plants');
  const known = open();
  for (let round = 0; round < 200; round++) assert.equal(await statusOf(known, list), 200);
  const beforeMiB = residentMiB(service);
  const connections = 9_800;
  let answered = 0;
  for (let at = 0; at < connections; at += 100) {
    const some = await Promise.all(Array.from({ length: 100 }, openUnread));
    for (const socket of some) {
      socket.once('data', () => answered++).resume();
      if (at % 200 === 0) socket.write(list); // half of them have been used before
    }
  }
  await untilCount('responses', connections / 2, () => answered);
  const eachKiB = ((residentMiB(service) - beforeMiB) * 1024) / connections;
  t.diagnostic(`${eachKiB.toFixed(1)} KiB each`);
  assert.ok(eachKiB <= 20, `${eachKiB} KiB each`);
  assert.equal(await statusOf(known, list), 200);
});

it('sends complete lists if CONNECT follows them', async (t) => {
  const plants = 10_000;
  const { open, request } = await start(t, { plants });
  const connection = open();
  const lists = 2;
  connection.write(
    `${request('GET /plants').repeat(lists)}CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n`,
  );
  await once(connection.socket, 'readable');
  await pause(500); // until the buffers of the system are full
  for (let at = 0; at < lists; at++) {
    const answer = await connection.answer();
    assert.equal(JSON.parse(answer?.body ?? '[]').length, plants, `list ${at + 1}`);
  }
  assert.equal((await connection.answer())?.status, 405);
  assert.equal(await connection.answer(), undefined);
});

/** A service with the user who uses too much of it, and one of another store. */
async function start(t: TestContext, options: Parameters<typeof startService>[1] = {}) {
  const started = await startService(t, options);
  return { ...started, other: await started.tokenOf('bob', '--store', 'elsewhere') };
}

type Target = Awaited<ReturnType<typeof start>>;

async function apply({ openUnread, request }: Target, { connections, bytes }: Load) {
  const text = bytes(request);
  // Some at a time, because this process also measures how long others wait. Then all ask at once.
  const together = 10;
  const sockets: Awaited<ReturnType<typeof openUnread>>[] = [];
  while (sockets.length < connections) {
    const some = Math.min(together, connections - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: some }, openUnread))));
  }
  for (const socket of sockets) socket.write(text);
}

function assertPrompt(livezP99Ms: number): void {
  assert.ok(livezP99Ms < maxLivezP99Ms, `${livezP99Ms} ms`);
}

/** Asserts that others are served during the attack, and that it takes a limited amount of memory. */
async function watchDuring(
  t: TestContext,
  target: Target,
  attack: () => Promise<unknown>,
): Promise<number> {
  const other = target.open();
  const connect = () => other;
  const quiet = await watch(target, lasting(quietMs), connect);
  let isAttacking = true;
  const isWatching = lasting(watchMs);
  const [seen] = await Promise.all([
    watch(target, () => isAttacking || isWatching(), connect),
    attack().finally(() => (isAttacking = false)),
  ]);
  const aboveIdleMiB = Math.round(seen.peakMiB - quiet.peakMiB);
  const p99 = (values: readonly number[]) => quantile(values, 0.99);
  const livezP99Ms = p99(seen.livezMs);
  const pageP99Ms = { quiet: p99(quiet.pageMs), seen: p99(seen.pageMs) };
  t.diagnostic(JSON.stringify({ aboveIdleMiB, livezP99Ms, pageP99Ms }));
  assert.ok(aboveIdleMiB <= maxMemoryMiB, `${aboveIdleMiB} MiB above idle`);
  return livezP99Ms;
}

/** The times of /livez, by default on new connections, and of another user's page on a kept one, and the peak memory. */
async function watch(
  { service, open, request, other }: Target,
  isRunning: () => boolean,
  connect: () => Connection = open,
) {
  const kept = open();
  const page = request('GET /plants?limit=20', { token: other });
  const check = connect === open ? livez : request('GET /livez', { token: other });
  const ask = async (connection: Connection, bytes: string) => {
    const startedMs = performance.now();
    assert.equal(await statusOf(connection, bytes), 200);
    return performance.now() - startedMs;
  };
  const [livezMs, pageMs]: [number[], number[]] = [[], []];
  let peakMiB = 0;
  while (isRunning()) {
    const connection = connect();
    livezMs.push(await ask(connection, check));
    if (connect === open) connection.socket.destroy();
    pageMs.push(await ask(kept, page));
    peakMiB = Math.max(peakMiB, residentMiB(service));
    await pause(5);
  }
  kept.socket.destroy();
  return { livezMs, pageMs, peakMiB };
}

function lasting(ms: number): () => boolean {
  const endMs = performance.now() + ms;
  return () => performance.now() < endMs;
}

function residentMiB({ child }: Service): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}
