/**
 * A service with two users, for clients that use too much of it.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { addToken } from '../support/app.ts';
import { serve, type Service } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';

export interface Target {
  service: Service;
  /** Of the greedy user, who owns `plants` plants of 800 bytes. */
  greedy: string;
  /** Of a user of another store. */
  other: string;
  open: () => Promise<Socket>;
}

export async function startTarget(
  t: Pick<TestContext, 'after'>,
  plants: number,
  options: { heapMiB?: number; under?: readonly string[]; args?: readonly string[] } = {},
): Promise<Target> {
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

/** Connections of an IPv4 address that the service has not accepted yet (proc(5), net/tcp). */
export function waitingConnections({ address }: Service): number {
  const port = Number(new URL(address).port).toString(16).toUpperCase().padStart(4, '0');
  const listening = new RegExp(String.raw`^ *\d+: \w+:${port} \w+:0000 0A \w+:(\w+)`, 'gm');
  const lines = readFileSync('/proc/net/tcp', 'utf8').matchAll(listening);
  return [...lines].reduce((sum, [, waiting = '']) => sum + Number.parseInt(waiting, 16), 0);
}
