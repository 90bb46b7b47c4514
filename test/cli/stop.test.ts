/**
 * How serve ends: every request on an accepted connection gets its response.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { soundIds } from '../support/database.ts';
import { until } from '../support/until.ts';
import { completeAtSignal, exitStatus, start, stopListening } from './stop.ts';

describe('serve after a signal', { concurrency: 2 }, () => {
  it('completes a request with a partial body, exits with 0, and leaves one complete file', (t) =>
    completeAtSignal(t, 'SIGTERM'));

  it('is alive but not ready on an open connection, and does not wait for an unused one', async (t) => {
    const { service, open } = await start(t);
    const unused = open();
    await once(unused.socket, 'connect');
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
    const answeredMs = performance.now();
    assert.equal(await exitStatus(service), 0);
    assert.ok(performance.now() - answeredMs < 5_000);
    await unused.closed();
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
});
