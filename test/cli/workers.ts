/**
 * A service with several workers, and connections to each of them.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { serve, type Service } from '../support/command.ts';
import { Connection, type RawAnswer } from '../support/connection.ts';
import { databaseFile, fill } from '../support/database.ts';
import { until } from '../support/until.ts';

export const workers = 2;
/** A new connection gets its response, or is closed, within this time. */
const answerMs = 20_000;

export async function start(t: Pick<TestContext, 'after'>) {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 0);
  const args = ['--workers', String(workers), '--log-level', 'debug', '--database', url];
  const service = await serve(t, args);
  const open = () => {
    const connection = new Connection(service.address);
    t.after(() => connection.socket.destroy());
    return connection;
  };
  return { path, url, token, service, open };
}

export type Started = Awaited<ReturnType<typeof start>>;

export function send(connection: Connection, token: string, first: string, body?: object) {
  const json = body === undefined ? '' : JSON.stringify(body);
  const lines = [`${first} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`];
  if (body !== undefined) {
    lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(json)}`);
  }
  connection.write(`${lines.join('\r\n')}\r\n\r\n${json}`);
  return connection.answer();
}

/** The process that sent the response, from the log of requests. */
async function processOf(service: Service, answer: RawAnswer | undefined): Promise<number> {
  const id = answer?.headers.find((line) => line.startsWith('x-request-id: '))?.split(': ')[1];
  assert.ok(id);
  const entry = new RegExp(`^.*"requestId":"${id}".*}$`, 'm');
  await until('the request is logged', () => entry.test(service.log()));
  return JSON.parse(entry.exec(service.log())?.[0] ?? '').pid;
}

/** One connection to each worker, as they come. */
export async function connectionToEach({ service, open, token }: Started) {
  const found = new Map<number, Connection>();
  await until('there is a connection to each worker', async () => {
    const connection = open();
    const answer = await send(connection, token, 'GET /plants?limit=1');
    if (answer === undefined) return false; // its worker has died, or none is listening
    const pid = await processOf(service, answer);
    if (found.has(pid)) connection.socket.destroy();
    else found.set(pid, connection);
    return found.size === workers;
  });
  return found;
}

/** Kills a worker while clients connect, this many times. Every client gets its response, or its connection is closed. */
export async function killWorkers(started: Started, kills: number): Promise<void> {
  const { token, open } = started;
  for (let kill = 0; kill < kills; kill++) {
    const [victim = 0] = (await connectionToEach(started)).keys();
    const asked = Array.from({ length: 60 }, async (_, at) => {
      if (at === 30) process.kill(victim, 'SIGKILL');
      const connection = open();
      const timer = setTimeout(() => connection.socket.destroy(), answerMs);
      const startedMs = performance.now();
      await send(connection, token, 'GET /plants?limit=1');
      clearTimeout(timer);
      connection.socket.destroy();
      return performance.now() - startedMs;
    });
    const slowestMs = Math.max(...(await Promise.all(asked)));
    assert.ok(slowestMs < answerMs, `no response and no close after kill ${kill + 1}`);
  }
}
