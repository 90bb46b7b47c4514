/**
 * serve --workers: several processes behind one address that behave like one process.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runOk } from '../support/command.ts';
import { soundIds } from '../support/database.ts';
import { shared } from '../support/shared.ts';
import { idOf } from '../support/tokens.ts';
import { until } from '../support/until.ts';
import { connectionToEach, send, start, workers } from './workers.ts';

describe('serve --workers', () => {
  const service = shared(start);

  it('shows the acknowledged changes of any process in every process', async () => {
    const started = service();
    const { token } = started;
    const connections = [...(await connectionToEach(started)).values()];
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
    assert.deepEqual(soundIds(started.path), ids);
  });

  it('loses and refuses no write of many concurrent ones in all processes', async () => {
    const started = service();
    const { path, token } = started;
    const [before, writes] = [soundIds(path).length, 30];
    const connections = [...(await connectionToEach(started)).values()];
    const statuses = await Promise.all(
      connections.map(async (connection) => {
        const seen: (number | undefined)[] = [];
        for (let at = 0; at < writes; at++) {
          seen.push((await send(connection, token, 'POST /plants', { name: 'a' }))?.status);
        }
        return seen;
      }),
    );
    assert.deepEqual([...new Set(statuses.flat())], [201]);
    assert.equal(soundIds(path).length, before + writes * workers);
  });

  it('refuses a token in every process as soon as it is revoked', async () => {
    const started = service();
    const { url } = started;
    const token = await runOk(['token', 'create', 'bob', '--database', url]);
    const connections = await connectionToEach({ ...started, token });
    await runOk(['token', 'revoke', idOf(token), '--database', url]);
    for (const connection of connections.values()) {
      assert.equal((await send(connection, token, 'GET /plants'))?.status, 401);
    }
  });

  it('replaces a worker that dies, and loses only its connections', async () => {
    const started = service();
    const { token } = started;
    const connections = await connectionToEach(started);
    const [[victim, lost] = assert.fail(), ...others] = connections;
    process.kill(victim, 'SIGKILL');
    await lost.closed();
    for (const [, connection] of others) {
      assert.equal((await send(connection, token, 'GET /plants'))?.status, 200);
      connection.socket.destroy();
    }
    const now = await connectionToEach(started);
    assert.equal(now.has(victim), false);
    const pattern = `"level":50[^\n]+"worker":${victim},[^\n]*"signal":"SIGKILL"[^\n]+"worker exited"`;
    assert.match(started.service.log(), new RegExp(pattern));
  });

  it('completes in every process the requests received before the stop', async () => {
    const started = service();
    const { path, token, service: running } = started;
    const plants = soundIds(path).length;
    const connections = [...(await connectionToEach(started)).values()];
    const body = JSON.stringify({ name: 'last' });
    for (const connection of connections) {
      const lines = ['POST /plants HTTP/1.1', 'Host: x', `Authorization: Bearer ${token}`];
      lines.push('Content-Type: application/json', `Content-Length: ${body.length}`);
      connection.write(`${lines.join('\r\n')}\r\nExpect: 100-continue\r\n\r\n`);
    }
    // Each has the head of a request when the signal comes, and its body only after that.
    const interim = await Promise.all(connections.map((connection) => connection.answer()));
    assert.deepEqual(new Set(interim.map((answer) => answer?.status)), new Set([100]));
    running.child.kill('SIGTERM');
    await until('all are stopping', () => running.log().split('"stopping"').length > workers);
    for (const connection of connections) connection.write(body);
    const answers = await Promise.all(connections.map((connection) => connection.answer()));
    assert.deepEqual(
      answers.map((answer) => [answer?.status, answer?.isLast]),
      connections.map(() => [201, true]),
    );
    assert.equal(await running.ended, 0);
    assert.equal(soundIds(path).length, plants + workers);
  });
});
