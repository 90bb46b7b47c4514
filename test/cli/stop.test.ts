/**
 * How serve ends: every request on an accepted connection gets its response.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, it } from 'node:test';
import type { Connection } from '../support/connection.ts';
import { soundIds } from '../support/database.ts';
import { sizeOf } from '../support/rounds.ts';
import { livez, parted, startService, statusOf, stopListening } from '../support/service.ts';
import { until } from '../support/until.ts';

const signals: readonly NodeJS.Signals[] = sizeOf({
  usual: ['SIGTERM'],
  long: ['SIGTERM', 'SIGINT', 'SIGHUP'],
});
const body = '{"name":"Monstera"}';

describe('serve', { concurrency: true }, () => {
  for (const signal of signals) {
    it(`drops no request after ${signal}, exits with 0, and leaves one complete file`, async (t) => {
      const { path, service, open, request } = await startService(t);
      const [unused, idle] = [open(), open()];
      await once(unused.socket, 'connect');
      assert.equal(await statusOf(idle), 200);
      // Half of a request keeps a connection from being idle.
      const begun = ['readyz', 'livez'].map((check) => {
        const connection = open();
        const get = `GET /${check} HTTP/1.1\r\n`;
        return { connection, check, first: statusOf(connection, `${get}Host: x\r\n\r\n${get}`) };
      });
      for (const { first } of begun) assert.equal(await first, 200);
      const partial = open();
      const expect = { body, headers: ['Expect: 100-continue'] };
      const [head] = parted(request('POST /plants', expect));
      assert.equal(await statusOf(partial, head), 100);
      partial.write(body.slice(0, 5));
      const requests = [request('POST /plants', { body }), request('GET /plants?limit=10'), livez];
      const created = { count: 0 };
      const clients = Array.from({ length: 32 }, () => repeat(open(), requests, created));
      await until('all clients are busy', () => created.count >= 200);

      await stopListening(service, signal);
      await Promise.all(clients);
      await idle.closed(); // so idle connections are being closed by now
      for (const { connection, check } of begun) {
        connection.write('Host: x\r\n\r\n');
        const answer = await connection.answer();
        const expected = [check === 'readyz' ? 503 : 200, true];
        assert.deepEqual([answer?.status, answer?.isLast], expected, check);
      }
      partial.write(body.slice(5));
      const last = await partial.answer();
      assert.deepEqual([last?.status, last?.isLast], [201, true]);
      const answeredMs = performance.now();
      assert.equal(await service.ended, 0);
      assert.ok(performance.now() - answeredMs < 5_000, 'it waits for no unused connection');
      await unused.closed();
      assert.match(service.log(), /"msg":"stopping"[^]*"msg":"stopped"/);
      assert.equal(soundIds(path).length, created.count + 1);
      assert.deepEqual(readdirSync(dirname(path)), ['plants.db']);
    });
  }

  it('accepts the connections that wait when it stops', async (t) => {
    const { service, open } = await startService(t);
    service.child.kill('SIGSTOP');
    const waiting = Array.from({ length: 100 }, () => open()); // of each listening socket more than one
    for (const { socket } of waiting) if (socket.connecting) await once(socket, 'connect');
    const responses = waiting.map((connection) => statusOf(connection, livez));
    service.child.kill('SIGTERM');
    service.child.kill('SIGCONT');
    assert.deepEqual(new Set(await Promise.all(responses)), new Set([200]));
    assert.equal(await service.ended, 0);
  });
});

/** Sends the requests in turn, and counts the creates, until the service announces that it closes the connection. */
async function repeat(
  connection: Connection,
  requests: readonly string[],
  created: { count: number },
): Promise<void> {
  for (let sent = 0; ; sent++) {
    connection.write(requests[sent % requests.length] ?? '');
    const answer = await connection.answer();
    assert.ok(answer, `no response to request ${sent}, and no close was announced`);
    assert.ok([200, 201].includes(answer.status), String(answer.status));
    if (answer.status === 201) created.count++;
    if (answer.isLast) return connection.closed();
  }
}
