/**
 * A service that stops, and connections to it.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import type { TestContext } from 'node:test';
import { serve, type Service } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { until } from '../support/until.ts';

export const manyPlants = 10_000; // 8 MB as JSON: more than the buffers of a connection hold

export async function start(t: TestContext, plants = 0) {
  const { path, url } = databaseFile(t);
  const token = await fill(path, plants);
  const service = await serve(t, ['--database', url]);
  const open = () => {
    const connection = new Connection(service.address);
    t.after(() => connection.socket.destroy());
    return connection;
  };
  const head = (first: string, ...more: string[]) =>
    `${[`${first} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`, ...more].join('\r\n')}\r\n`;
  return { path, service, open, head };
}

/** Sends the signal and waits until no connection is accepted any more. */
export async function stopListening(
  service: Service,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<void> {
  service.child.kill(signal);
  const { hostname: host, port } = new URL(service.address);
  await until('the port is closed', async () => {
    const socket = connect({ host, port: Number(port) });
    const isRefused = await once(socket, 'connect').then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED',
    );
    socket.destroy();
    return isRefused;
  });
}

export async function exitStatus({ child }: Service): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

/** A request whose body is incomplete at the signal gets its response, and everything is closed. */
export async function completeAtSignal(t: TestContext, signal: NodeJS.Signals): Promise<void> {
  const { path, service, open, head } = await start(t, 3);
  const [idle, connection] = [open(), open()];
  idle.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.equal((await idle.answer())?.status, 200);
  const body = '{"name":"Monstera"}';
  const headers = ['Content-Type: application/json', `Content-Length: ${body.length}`];
  connection.write(`${head('POST /plants', ...headers, 'Expect: 100-continue')}\r\n`);
  assert.equal((await connection.answer())?.status, 100);
  connection.write(body.slice(0, 5));

  await stopListening(service, signal);
  await idle.closed(); // so idle connections are being closed by now
  connection.write(body.slice(5));
  const answer = await connection.answer();
  assert.equal(answer?.status, 201);
  assert.ok(answer.isLast, 'the response has Connection: close');
  assert.equal(await service.ended, 0);
  assert.match(service.log(), /"msg":"stopping"[^]*"msg":"stopped"/);
  assert.deepEqual(soundIds(path), [1, 2, 3, 4]);
  assert.deepEqual(readdirSync(dirname(path)), ['plants.db']);
}
