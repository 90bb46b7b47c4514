/**
 * serve --workers: several processes behind one address that behave like one process.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { run, runOk, serve, type Service } from '../support/command.ts';
import { Connection, type RawAnswer } from '../support/connection.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { until } from '../support/until.ts';

const workers = 3;
/** A new connection gets its response, or is closed, within this time. */
const answerMs = 20_000;

async function start(t: TestContext) {
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

function send(connection: Connection, token: string, first: string, body?: object) {
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
  const entry = () =>
    service
      .log()
      .split('\n')
      .find((line) => line.includes(`"requestId":"${id}"`) && line.endsWith('}'));
  await until('the request is logged', () => entry() !== undefined);
  return JSON.parse(entry() ?? '').pid;
}

/** One connection to each worker, as they come. */
async function connectionToEach(service: Service, open: () => Connection, token: string) {
  const found = new Map<number, Connection>();
  await until('there is a connection to each worker', async () => {
    const connection = open();
    const answer = await send(connection, token, 'GET /plants');
    if (answer === undefined) return false; // its worker has died, or none is listening
    const pid = await processOf(service, answer);
    if (found.has(pid)) connection.socket.destroy();
    else found.set(pid, connection);
    return found.size === workers;
  });
  return found;
}

describe('serve --workers', { concurrency: 2 }, () => {
  it('closes every connection of a killed worker that it has not answered', async (t) => {
    const { token, service, open } = await start(t);
    for (let kill = 0; kill < 16; kill++) {
      const [victim = 0] = (await connectionToEach(service, open, token)).keys();
      const asked = Array.from({ length: 60 }, async (_, at) => {
        if (at === 30) process.kill(victim, 'SIGKILL');
        const connection = open();
        const timer = setTimeout(() => connection.socket.destroy(), answerMs);
        const startedMs = performance.now();
        await send(connection, token, 'GET /plants');
        clearTimeout(timer);
        connection.socket.destroy();
        return performance.now() - startedMs;
      });
      const slowestMs = Math.max(...(await Promise.all(asked)));
      assert.ok(slowestMs < answerMs, `no response and no close after kill ${kill + 1}`);
    }
    assert.equal(await service.stop(), 0);
  });

  it('shows the acknowledged changes of any process in every process', async (t) => {
    const { path, token, service, open } = await start(t);
    const connections = [...(await connectionToEach(service, open, token)).values()];
    const ids: number[] = [];
    for (let round = 0; round < 5; round++) {
      for (const writer of connections) {
        const name = `plant ${ids.length + 1}`;
        const created = await send(writer, token, 'POST /plants', { name });
        assert.equal(created?.status, 201);
        ids.push(ids.length + 1);
        for (const reader of connections) {
          const list = await send(reader, token, 'GET /plants?fields=id&limit=100');
          assert.deepEqual(
            JSON.parse(list?.body ?? ''),
            ids.map((id) => ({ id })),
          );
        }
      }
    }
    assert.equal(await service.stop(), 0);
    assert.deepEqual(soundIds(path), ids);
  });

  it('loses and refuses no write of many concurrent ones in all processes', async (t) => {
    const { path, token, service, open } = await start(t);
    const connections = [...(await connectionToEach(service, open, token)).values()];
    const statuses = await Promise.all(
      connections.map(async (connection) => {
        const seen: (number | undefined)[] = [];
        for (let at = 0; at < 100; at++) {
          seen.push((await send(connection, token, 'POST /plants', { name: 'a' }))?.status);
        }
        return seen;
      }),
    );
    assert.deepEqual([...new Set(statuses.flat())], [201]);
    assert.equal(await service.stop(), 0);
    assert.equal(soundIds(path).length, 100 * workers);
  });

  it('refuses a token in every process as soon as it is revoked', async (t) => {
    const { url, token, service, open } = await start(t);
    const connections = await connectionToEach(service, open, token);
    const [id = ''] = (await runOk(['token', 'list', '--database', url]))
      .split('\n')
      .map((line) => line.split(/\s/)[0])
      .filter((first) => /^\w{9}-[0-9a-f]{16}$/.test(first ?? ''));
    await runOk(['token', 'revoke', id, '--database', url]);
    for (const connection of connections.values()) {
      assert.equal((await send(connection, token, 'GET /plants'))?.status, 401);
    }
  });

  it('replaces a worker that dies, and loses only its connections', async (t) => {
    const { token, service, open } = await start(t);
    const connections = await connectionToEach(service, open, token);
    const [[victim, lost] = assert.fail(), ...others] = connections;
    process.kill(victim, 'SIGKILL');
    await lost.closed();
    for (const [, connection] of others) {
      assert.equal((await send(connection, token, 'GET /plants'))?.status, 200);
      connection.socket.destroy();
    }
    const now = await connectionToEach(service, open, token);
    assert.equal(now.has(victim), false);
    assert.match(service.log(), /"level":50[^\n]+"signal":"SIGKILL"[^\n]+"worker exited"/);
  });

  it('replaces all workers if they die at once, even right after their start', async (t) => {
    const { token, service, open } = await start(t);
    for (let round = 0; round < 2; round++) {
      const before = await connectionToEach(service, open, token);
      for (const pid of before.keys()) process.kill(pid, 'SIGKILL');
      for (const connection of before.values()) await connection.closed();
    }
    await until('all deaths are logged', () => {
      const ended = service.log().split('"worker exited"').length - 1;
      return ended === 2 * workers;
    });
    assert.equal(service.child.exitCode, null);
    assert.equal(await service.stop(), 0);
  });

  it('completes in every process the requests received before the stop', async (t) => {
    const { token, service, open } = await start(t);
    const connections = [...(await connectionToEach(service, open, token)).values()];
    const body = JSON.stringify({ name: 'last' });
    for (const connection of connections) {
      const lines = ['POST /plants HTTP/1.1', 'Host: x', `Authorization: Bearer ${token}`];
      lines.push('Content-Type: application/json', `Content-Length: ${body.length}`);
      connection.write(`${lines.join('\r\n')}\r\nExpect: 100-continue\r\n\r\n`);
    }
    // Each has the head of a request when the signal comes, and its body only after that.
    const interim = await Promise.all(connections.map((connection) => connection.answer()));
    assert.deepEqual(new Set(interim.map((answer) => answer?.status)), new Set([100]));
    service.child.kill('SIGTERM');
    await until('all are stopping', () => service.log().split('"stopping"').length > workers);
    for (const connection of connections) connection.write(body);
    const answers = await Promise.all(connections.map((connection) => connection.answer()));
    assert.deepEqual(
      answers.map((answer) => [answer?.status, answer?.isLast]),
      connections.map(() => [201, true]),
    );
    assert.equal(await service.ended, 0); // a second signal would end it at once
  });

  it('reports once why it cannot start, and exits with 1', async (t) => {
    const { url, service } = await start(t);
    const { port } = new URL(service.address);
    const args = ['serve', '--workers', '2', '--port', port, '--database', url];
    const { status, stdout, stderr } = await run(args);
    assert.deepEqual([status, stdout], [1, '']);
    assert.equal(
      stderr,
      `error: Cannot listen on 127.0.0.1:${port}: the port is in use. Choose another with --port, or 0 for a free one.\n`,
    );
  });
});
