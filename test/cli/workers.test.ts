/**
 * serve --workers: several processes behind one address that behave like one process.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { run, runOk, type Service } from '../support/command.ts';
import type { Connection, RawAnswer } from '../support/connection.ts';
import { soundIds } from '../support/database.ts';
import { sizeOf } from '../support/rounds.ts';
import { parted, startService, statusOf, type Started } from '../support/service.ts';
import { shared } from '../support/shared.ts';
import { idOf } from '../support/tokens.ts';
import { until } from '../support/until.ts';

const workers = 2;
/** How many die at once, again and again. */
const deaths = sizeOf({ usual: [1], long: [1, 2, 2, 1, 1, 1] });
/** A new connection gets its response, or is closed, within this time. */
const answerMs = 20_000;
const body = '{"name":"Monstera"}';

describe('serve --workers', () => {
  const started = shared((t) =>
    startService(t, { args: ['--workers', String(workers), '--log-level', 'debug'] }),
  );

  it('loses and refuses no write of many concurrent ones in all processes', async () => {
    const { path, request } = started();
    const [before, writes] = [soundIds(path).length, 30];
    const connections = await connectionToEach(started());
    const writing = [...connections.values()].map(async (connection) => {
      for (let at = 0; at < writes; at++) {
        assert.equal(await statusOf(connection, request('POST /plants', { body })), 201);
      }
    });
    await Promise.all(writing);
    assert.equal(soundIds(path).length, before + writes * workers);
  });

  it('refuses a token in every process as soon as it is revoked', async () => {
    const { url, request, tokenOf } = started();
    const token = await tokenOf('bob');
    const list = request('GET /plants', { token });
    const connections = await connectionToEach(started(), list);
    await runOk(['token', 'revoke', idOf(token), '--database', url]);
    for (const connection of connections.values()) {
      assert.equal(await statusOf(connection, list), 401);
    }
  });

  it('replaces a worker that dies, loses only its connections, and keeps the address', async () => {
    const { service, port, url, request } = started();
    for (const count of deaths) {
      const connections = [...(await connectionToEach(started()))];
      const [dying, others] = [connections.slice(0, count), connections.slice(count)];
      // Of the clients that connect meanwhile, each gets its response, or its connection is closed.
      const waits = Array.from({ length: 60 }, async (_, at) => {
        if (at === 30) for (const [pid] of dying) process.kill(pid, 'SIGKILL');
        const connection = started().open();
        const timer = setTimeout(() => connection.socket.destroy(), answerMs);
        const startedMs = performance.now();
        await statusOf(connection, request('GET /plants?limit=1'));
        clearTimeout(timer);
        connection.socket.destroy();
        return performance.now() - startedMs;
      });
      for (const [, connection] of dying) await connection.closed();
      const again = await run(['serve', '--workers', '2', '--port', `${port}`, '--database', url]);
      assert.deepEqual(again, {
        status: 1,
        stdout: '',
        stderr:
          `error: Cannot listen on 127.0.0.1:${port}: the port is in use. ` +
          'Choose another with --port, or 0 for a free one.\n',
      });
      for (const [, connection] of others) {
        assert.equal(await statusOf(connection, request('GET /plants')), 200);
        connection.socket.destroy();
      }
      assert.ok(Math.max(...(await Promise.all(waits))) < answerMs, 'no response and no close');
      const now = await connectionToEach(started());
      for (const [pid] of dying) {
        assert.equal(now.has(pid), false);
        const entry = `"level":50[^\n]+"worker":${pid},[^\n]*"signal":"SIGKILL"[^\n]+"worker exited"`;
        assert.match(service.log(), new RegExp(entry));
      }
    }
  });

  it('completes in every process the requests received before the stop', async () => {
    const { path, request, service } = started();
    const plants = soundIds(path).length;
    const connections = [...(await connectionToEach(started())).values()];
    const headers = ['Expect: 100-continue'];
    const [head] = parted(request('POST /plants', { body, headers }));
    // Each has the head of a request when the signal comes, and its body only after that.
    for (const connection of connections) assert.equal(await statusOf(connection, head), 100);
    service.child.kill('SIGTERM');
    await until('all are stopping', () => service.log().split('"stopping"').length > workers);
    for (const connection of connections) {
      connection.write(body);
      assert.equal((await connection.answer())?.status, 201);
    }
    for (const connection of connections) await connection.closed();
    assert.equal(await service.ended, 0);
    assert.equal(soundIds(path).length, plants + workers);
  });
});

/** One connection to each worker, as they come. */
async function connectionToEach(
  { service, open, request }: Started,
  list = request('GET /plants?limit=1'),
): Promise<Map<number, Connection>> {
  const found = new Map<number, Connection>();
  await until('there is a connection to each worker', async () => {
    const connection = open();
    connection.write(list);
    const answer = await connection.answer();
    if (answer === undefined) return false; // its worker has died, or none is listening
    const pid = await processOf(service, answer);
    if (found.has(pid)) connection.socket.destroy();
    else found.set(pid, connection);
    return found.size === workers;
  });
  return found;
}

/** The process that sent the response, from the log of requests. */
async function processOf(service: Service, { headers }: RawAnswer): Promise<number> {
  const id = headers.find((line) => line.startsWith('x-request-id: '))?.split(': ')[1];
  assert.ok(id);
  const entry = new RegExp(`^.*"requestId":"${id}".*}$`, 'm');
  await until('the request is logged', () => entry.test(service.log()));
  return JSON.parse(entry.exec(service.log())?.[0] ?? '').pid;
}
