/**
 * Clients that send many requests and read nothing, and measurements of other clients meanwhile.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { addToken } from '../support/app.ts';
import { serve, type Service } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';

export interface Besieged {
  service: Service;
  /** Of the greedy user, who owns `plants` plants of 800 bytes. */
  greedy: string;
  /** Of a user of another store. */
  other: string;
  open: () => Promise<Socket>;
}

export async function besiege(
  t: Pick<TestContext, 'after'>,
  plants: number,
  options: { heapMiB?: number; under?: readonly string[]; args?: readonly string[] } = {},
): Promise<Besieged> {
  const { path, url } = databaseFile(t);
  const greedy = await fill(path, plants);
  const storage = new SqliteStorage(path, { create: false });
  const other = await addToken(storage, 'bob', { store: 'elsewhere' });
  await storage[Symbol.asyncDispose]();
  const heap = options.heapMiB === undefined ? '' : `--max-old-space-size=${options.heapMiB}`;
  const service = await serve(t, ['--database', url, ...(options.args ?? [])], {
    env: { NODE_OPTIONS: heap },
    under: options.under ?? [],
  });
  const { hostname: host, port } = new URL(service.address);
  const open = async () => {
    const socket = connect({ host, port: Number(port) });
    socket.on('error', () => {});
    socket.pause();
    t.after(() => socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
  return { service, greedy, other, open };
}

export function listRequest(token: string, target = '/plants'): string {
  return `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
}

export interface Seen {
  /** The peak memory of the process above its idle memory. */
  aboveIdleMiB: number;
  livezP99Ms: number;
  /** Of the first page of another user: before, and meanwhile. */
  quietP99Ms: number;
  pageP99Ms: number;
  answers: number;
}

/** Measures the service for a while, then again during the attack. */
export async function watchWhile(
  { service, other }: Besieged,
  attack: () => Promise<void>,
  watchMs: number,
): Promise<Seen> {
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
  const until = after(watchMs);
  const [seen] = await Promise.all([
    measure(() => isAttacking || until()),
    attack().finally(() => (isAttacking = false)),
  ]);
  agent.destroy();
  return {
    aboveIdleMiB: Math.round(seen.peakMiB - quiet.peakMiB),
    livezP99Ms: p99(seen.livez),
    quietP99Ms: p99(quiet.page),
    pageP99Ms: p99(seen.page),
    answers: seen.livez.length,
  };
}

export function residentMiB({ child }: Service): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

/** Connections of an IPv4 address that the service has not accepted yet (proc(5), net/tcp). */
export function waitingConnections({ address }: Service): number {
  const port = Number(new URL(address).port).toString(16).toUpperCase().padStart(4, '0');
  const listening = new RegExp(String.raw`^ *\d+: \w+:${port} \w+:0000 0A \w+:(\w+)`, 'gm');
  const lines = readFileSync('/proc/net/tcp', 'utf8').matchAll(listening);
  return [...lines].reduce((sum, [, waiting = '']) => sum + Number.parseInt(waiting, 16), 0);
}

function p99(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return Math.round((sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN) * 10) / 10;
}

export interface Siege {
  connections: number;
  /** The bytes that each connection sends, without ever reading. */
  bytes: (token: string) => string;
}

export const sieges: Record<string, Siege> = {
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

export async function lay(besieged: Besieged, { connections, bytes }: Siege): Promise<void> {
  const text = bytes(besieged.greedy);
  // Some at a time, because this process also measures how long others wait. Then all ask at once.
  const together = 10;
  const sockets: Socket[] = [];
  while (sockets.length < connections) {
    const some = Array.from(
      { length: Math.min(together, connections - sockets.length) },
      besieged.open,
    );
    sockets.push(...(await Promise.all(some)));
  }
  for (const socket of sockets) socket.write(text);
}

/** Above idle. Much of it is garbage that V8 has not collected, so it differs by 40 MiB from run to run. */
export const maxMemoryMiB = 200;
