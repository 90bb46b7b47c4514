/**
 * Other signals, and clients that are slower.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { maxPipelinedRequests } from '../../src/http/limits.ts';
import { call } from '../support/app.ts';
import { executable, serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { until } from '../support/until.ts';
import { without } from '../support/programs.ts';
import { completeAtSignal, exitStatus, manyPlants, start, stopListening } from './stop.ts';

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

  for (const signal of ['SIGINT', 'SIGHUP'] as const) {
    it(`completes a request with a partial body at ${signal}, exits with 0, and leaves one complete file`, (t) =>
      completeAtSignal(t, signal));
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

  it('ignores a second signal, which npm sends too', async (t) => {
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
