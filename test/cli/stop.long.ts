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
import { databaseFile } from '../support/database.ts';
import { quotedExecutable } from '../support/on-terminal.ts';
import { without } from '../support/programs.ts';
import { parted, startService, statusOf, stopListening } from '../support/service.ts';
import { until } from '../support/until.ts';

await import('./stop.test.ts');

const plants = 10_000; // 8 MB as JSON: more than the buffers of a connection hold

describe('serve after a signal', { concurrency: true }, () => {
  it('waits at most ten seconds for a client that never reads', async (t) => {
    const { service, open, request } = await startService(t, { plants });
    for (const follower of ['', 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n']) {
      const connection = open();
      connection.write(request('GET /plants') + follower);
      await once(connection.socket, 'readable');
    }
    const startedMs = performance.now();
    const status = await service.stop();
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs > 9_000, `it was aborted after ${tookMs} ms`);
    assert.equal(status, 0, 'it was not killed, which it would be after 15 seconds');
  });

  it(
    'stops gracefully if its terminal is closed, even under nohup',
    { skip: without('script') },
    async (t) => {
      const { folder, path, url } = databaseFile(t);
      const log = join(folder, 'log');
      const service = `${quotedExecutable} serve --port 0 --database '${url}'`;
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
    const { service, open, request } = await startService(t);
    const connection = open();
    const [head, body] = parted(request('POST /plants', { body: '{"name":"late"}' }));
    connection.write(head);
    await call(`${service.address}/livez`, 'GET'); // the head has come by then
    service.child.kill('SIGINT');
    await stopListening(service, 'SIGINT');
    assert.equal(await statusOf(connection, body), 201);
    assert.equal(await service.ended, 0);
  });

  it('sends a complete long list to a slow client', async (t) => {
    const { service, open, request } = await startService(t, { plants });
    const connection = open();
    const both = request('GET /plants?fields=id') + request('GET /plants');
    assert.equal(await statusOf(connection, both), 200);
    await once(connection.socket, 'readable'); // the second has begun, and then waits for its reader
    await stopListening(service);
    const answer = await connection.answer();
    assert.equal(JSON.parse(answer?.body ?? '').length, plants);
    assert.equal(await service.ended, 0);
  });

  it('sends every complete response to a slow client', async (t) => {
    const { service, open, request } = await startService(t, { plants: 2_000 });
    const connection = open();
    // All at once without reading, of 0.8 MB each: more than the system's buffers hold.
    const requests = maxPipelinedRequests + 1;
    connection.write(request('GET /plants?limit=1000').repeat(requests));
    await once(connection.socket, 'readable');

    await stopListening(service);
    await pause(1_500); // longer than an idle connection is left open
    for (let at = 1; at <= requests; at++) {
      const answer = await connection.answer();
      assert.equal(JSON.parse(answer?.body ?? '""').length, 1_000, `answer ${at}`);
    }
    assert.equal(await service.ended, 0);
  });

  it('opens no debugger at SIGUSR1, in the first process or a worker', async (t) => {
    const args = ['--workers', '2', '--log-level', 'debug'];
    const { service } = await startService(t, { args });
    const worker = () => /"pid":(\d+).*"route":"\/livez"/.exec(service.log())?.[1];
    await call(`${service.address}/livez`, 'GET');
    await until('a worker has logged the request', () => worker() !== undefined);
    for (const pid of [service.child.pid, worker()]) process.kill(Number(pid), 'SIGUSR1');
    assert.equal((await call(`${service.address}/livez`, 'GET')).status, 200);
    assert.equal(await service.stop(), 0);
    assert.doesNotMatch(service.log(), /debugger|inspector/i);
  });
});
