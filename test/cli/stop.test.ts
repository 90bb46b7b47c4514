/**
 * How serve ends: every request on an accepted connection gets its response.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { maxPipelinedRequests } from '../../src/http/limits.ts';
import { call } from '../support/app.ts';
import { executable, serve, type Service } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { until } from '../support/until.ts';
import { without } from '../support/programs.ts';

const manyPlants = 30_000; // 24 MB as JSON: more than the buffers of a connection hold

async function start(t: TestContext, plants = 0) {
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
async function stopListening(service: Service, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
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

async function exitStatus({ child }: Service): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

describe('serve after a signal', { concurrency: 2 }, () => {
  // First, so that the others run while it waits.
  it('waits at most ten seconds for a client that never reads', async (t) => {
    const { service, open, head } = await start(t, manyPlants);
    for (const follower of ['', 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n']) {
      const connection = open();
      connection.write(`${head('GET /plants')}\r\n${follower}`);
      await once(connection.socket, 'readable');
    }
    const startedMs = performance.now();
    const status = await service.stop();
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs > 9_000, `it was aborted after ${tookMs} ms`);
    assert.equal(status, 0, 'it was not killed, which it would be after 15 seconds');
  });

  it('counts the same signal twice at once as one, because npm repeats it', async (t) => {
    const { service, open, head } = await start(t, 3);
    const connection = open();
    const body = '{"name":"late"}';
    connection.write(
      `${head('POST /plants')}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    await call(`${service.address}/livez`, 'GET'); // the head has come by then
    service.child.kill('SIGINT');
    await stopListening(service, 'SIGINT');
    connection.write(body);
    assert.equal((await connection.answer())?.status, 201);
    assert.equal(await exitStatus(service), 0);
  });

  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    it(`completes a request with a partial body at ${signal}, exits with 0, and leaves one complete file`, async (t) => {
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
    });
  }

  it(
    'stops gracefully if its terminal is closed, even under nohup',
    { skip: without('script') },
    async (t) => {
      const { folder, path, url } = databaseFile(t);
      const log = join(folder, 'log');
      const service = `'${process.execPath}' '${executable}' serve --port 0 --database '${url}'`;
      const command = `trap '' HUP; exec ${service} 2>'${log}'`; // as nohup does it
      const terminal = spawn('script', ['-qec', command, '/dev/null'], { stdio: 'ignore' });
      t.after(() => terminal.kill('SIGKILL'));
      const isLogged = (entry: RegExp) => existsSync(log) && entry.test(readFileSync(log, 'utf8'));
      await until('it listens', () => isLogged(/"msg":"listening"/));
      terminal.kill('SIGKILL'); // with it, the other end of the terminal is gone
      await until('it has stopped', () => isLogged(/"msg":"stopping"[^]*"msg":"stopped"/));
      await until('the database is closed', () => !existsSync(`${path}-wal`));
    },
  );

  it('is alive but not ready on an open connection', async (t) => {
    const { service, open } = await start(t);
    const [ready, alive] = [open(), open()];
    // A request half sent keeps the connection from being idle.
    ready.write('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\nGET /readyz HTTP/1.1\r\n');
    alive.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /livez HTTP/1.1\r\n');
    assert.deepEqual([(await ready.answer())?.status, (await alive.answer())?.status], [200, 200]);
    await stopListening(service);
    for (const [connection, status] of [
      [ready, 503],
      [alive, 200],
    ] as const) {
      connection.write('Host: x\r\n\r\n');
      const answer = await connection.answer();
      assert.deepEqual([answer?.status, answer?.isLast], [status, true]);
    }
    assert.equal(await exitStatus(service), 0);
  });

  it('sends a complete long list to a slow client', async (t) => {
    const { service, open, head } = await start(t, manyPlants);
    const connection = open();
    connection.write(`${head('GET /plants?fields=id')}\r\n${head('GET /plants')}\r\n`);
    assert.equal((await connection.answer())?.status, 200);
    await once(connection.socket, 'readable'); // the second has begun, and then waits for its reader
    await stopListening(service);
    const answer = await connection.answer();
    assert.equal(JSON.parse(answer?.body ?? '').length, manyPlants);
    assert.equal(await exitStatus(service), 0);
  });

  it('sends every complete response to a slow client', async (t) => {
    const { service, open, head } = await start(t, 2_000);
    const connection = open();
    // All at once without reading, of 0.8 MB each: more than the system's buffers hold.
    const requests = maxPipelinedRequests + 1;
    connection.write(`${head('GET /plants?limit=1000')}\r\n`.repeat(requests));
    await once(connection.socket, 'readable');

    await stopListening(service);
    await pause(1_500); // longer than an idle connection is left open
    for (let request = 1; request <= requests; request++) {
      const answer = await connection.answer();
      assert.equal(JSON.parse(answer?.body ?? '""').length, 1_000, `answer ${request}`);
    }
    assert.equal(await exitStatus(service), 0);
  });

  it('drops no request on keep-alive connections', async (t) => {
    const { path, service, open, head } = await start(t);
    const created = { count: 0 };
    const body = '{"name":"Monstera"}';
    const headers = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    const requests = [
      `${head('POST /plants', ...headers)}\r\n${body}`,
      `${head('GET /plants?limit=10')}\r\n`,
      'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n',
    ];
    const hammer = async () => {
      const connection = open();
      for (let sent = 0; ; sent++) {
        connection.write(requests[sent % requests.length] ?? '');
        const answer = await connection.answer();
        assert.ok(answer, `no response to request ${sent}, and no close was announced`);
        assert.ok([200, 201].includes(answer.status), String(answer.status));
        if (answer.status === 201) created.count++;
        if (answer.isLast) return connection.closed();
      }
    };
    const clients = Array.from({ length: 32 }, hammer);
    await until('all clients are busy', () => created.count >= 200);
    await stopListening(service);
    await Promise.all(clients);
    assert.equal(await exitStatus(service), 0);
    assert.equal(soundIds(path).length, created.count);
  });

  it('does not wait for an unused connection', async (t) => {
    const { service, open } = await start(t);
    const unused = open();
    await once(unused.socket, 'connect');
    const startedMs = performance.now();
    assert.equal(await service.stop(), 0);
    assert.ok(performance.now() - startedMs < 5_000);
    await unused.closed();
  });
});

describe('SIGUSR1', () => {
  it('opens no debugger, in the first process or a worker', async (t) => {
    const { url } = databaseFile(t);
    const args = ['--workers', '2', '--log-level', 'debug', '--database', url];
    const service = await serve(t, args);
    const worker = () => /"pid":(\d+).*"route":"\/livez"/.exec(service.log())?.[1];
    await call(`${service.address}/livez`, 'GET');
    await until('a worker has logged the request', () => worker() !== undefined);
    for (const pid of [service.child.pid, worker()]) process.kill(Number(pid), 'SIGUSR1');
    assert.equal((await call(`${service.address}/livez`, 'GET')).status, 200);
    assert.equal(await service.stop(), 0);
    assert.doesNotMatch(service.log(), /debugger|inspector/i);
  });
});
