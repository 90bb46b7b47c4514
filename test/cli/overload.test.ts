/**
 * One client cannot block the others: not by sending many requests at once, nor by never reading, nor by
 * idle connections.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { maxPipelinedRequests } from '../../src/http/limits.ts';
import { call } from '../support/app.ts';
import { livez, startService, statusOf } from '../support/service.ts';
import { shared } from '../support/shared.ts';
import { until } from '../support/until.ts';

/** 8 MB as a list: more than the system's buffers hold for a connection. */
const plants = 10_000;
const maxFiles = 300;
const body = '{"name":"Monstera"}';

describe('serve', () => {
  const started = shared((t) => startService(t, { plants }));
  /** With some hundred connections. */
  const startLimited = (t: TestContext) =>
    startService(t, { under: ['sh', '-c', `ulimit -n ${maxFiles}; exec "$0" "$@"`] });

  it('responds to the first of many pipelined requests, then closes the connection with notice', async () => {
    const { open, request, tokenOf } = started();
    const connection = open();
    const many = 2_000; // in one write, which Node reads in pieces of 64 KiB
    connection.write(livez.repeat(many));
    let answers = 0;
    for (let isLast = false; !isLast; answers++) {
      const answer = await connection.answer();
      assert.equal(answer?.status, 200);
      ({ isLast } = answer);
    }
    assert.ok(answers > maxPipelinedRequests && answers < many, `${answers} answers`);
    assert.equal(await connection.answer(), undefined);
    const token = await tokenOf('bob');
    assert.equal(await statusOf(open(), request('GET /plants', { token })), 200);
  });

  it('responds to every request of a client that pipelines eight', async () => {
    const { open, request } = started();
    const connection = open();
    const create = request('POST /plants', { body });
    const requests = 300;
    const send = (at: number) => {
      const list = request(`GET /plants?limit=100&after=${at % 50}&fields=id`);
      connection.write(at % 3 === 0 ? create : list);
    };
    for (let at = 0; at < maxPipelinedRequests; at++) send(at);
    for (let at = 0; at < requests; at++) {
      if (at + maxPipelinedRequests < requests) send(at + maxPipelinedRequests);
      const answer = await connection.answer();
      assert.equal(answer?.status, at % 3 === 0 ? 201 : 200);
      assert.equal(answer.isLast, false);
      if (at % 3 === 0) continue;
      const [first] = JSON.parse(answer.body) as { id: number }[];
      assert.equal(first?.id, (at % 50) + 1, 'in the order of the requests');
    }
  });

  it('releases the lists of clients that have disconnected', async () => {
    const { openUnread, open, request } = started();
    const list = request('GET /plants');
    for (let round = 0; round < 8; round++) {
      const sockets = await Promise.all(Array.from({ length: 16 }, openUnread));
      for (const socket of sockets) socket.write(list);
      const afterMs = round;
      await pause(afterMs);
      for (const socket of sockets) socket.resetAndDestroy();
    }
    await until('a list succeeds again', async () => (await statusOf(open(), list)) === 200);
  });

  it('serves users while clients without a token leave documents unread', async (t) => {
    const { port, open, openUnread, request } = await startLimited(t);
    const document = 'GET /docs HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100);
    for (let at = 0; at < 200; at++) (await openUnread()).write(document);
    // Each one closes another, which can be the next one here until its request arrives.
    await until('all are accepted', () => waitingConnections(port) === 0);
    for (let at = 0; at < 10; at++) {
      const connection = open();
      assert.equal(await statusOf(connection, request('GET /plants')), 200);
      connection.socket.destroy();
    }
  });

  it('lets long lists of a user wait until others are read, but serves short pages', async () => {
    const { service, token, openUnread, request } = started();
    const list = async () => {
      const socket = await openUnread();
      socket.write(request('GET /plants'));
      return socket;
    };
    const firstBytes = async (socket: Socket) => {
      const [bytes] = await once(socket.resume(), 'data');
      return String(bytes).slice(0, 12);
    };
    const unread = await Promise.all(Array.from({ length: 16 }, list));
    for (const socket of unread) {
      assert.equal(await firstBytes(socket), 'HTTP/1.1 200');
      socket.pause();
    }
    const further = await Promise.all(Array.from({ length: 8 }, list));
    const answers = further.map(async (socket) => {
      const first = await firstBytes(socket);
      socket.destroy();
      return first;
    });
    // Enough that the others would have been served.
    for (let at = 0; at < 20; at++) {
      const page = await call(`${service.address}/plants?limit=10`, 'GET', { token });
      assert.equal(page.status, 200);
    }
    const created = { token, json: { name: 'one more' } };
    assert.equal((await call(`${service.address}/plants`, 'POST', created)).status, 201);
    assert.deepEqual(new Set(further.map(({ bytesRead }) => bytesRead)), new Set([0]));
    for (const socket of unread) socket.destroy();
    assert.deepEqual(new Set(await Promise.all(answers)), new Set(['HTTP/1.1 200']));
  });

  it('responds to a client that has closed its side of the connection', async () => {
    const { openUnread, request } = started();
    const socket = await openUnread();
    socket.end(request('POST /plants', { body }));
    assert.match(await textOf(socket), /^HTTP\/1\.1 201 /);
  });

  it('drops idle connections without a valid token first when connections run out', async (t) => {
    const { service, open, openUnread, request } = await startLimited(t);
    const known = open();
    const list = request('GET /plants');
    assert.equal(await statusOf(known, list), 200);
    let ended = 0;
    for (let at = 0; at < maxFiles; at++) {
      const stranger = await openUnread();
      stranger.resume().once('close', () => ended++);
      if (at % 2 === 0) stranger.write('GET /livez HTT'); // and no more
    }
    await until('some have been dropped', () => ended >= maxFiles - 150);
    assert.match(service.log(), /"connections":100,"msg":"few open files allowed"/);
    assert.match(service.log(), /"connections":100,"msg":"connections are closed"/);
    assert.equal(await statusOf(known, list), 200);
    assert.equal(await statusOf(open(), list), 200);
    const create = request('POST /plants', { body });
    assert.equal(await statusOf(open(), create), 201, 'the storage can open its files');
  });
});

async function textOf(socket: Socket): Promise<string> {
  const chunks: string[] = [];
  for await (const chunk of socket.setEncoding('latin1')) chunks.push(String(chunk));
  return chunks.join('');
}

/** Connections to this port of an IPv4 address that the service has not accepted yet (proc(5), net/tcp). */
function waitingConnections(port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const listening = new RegExp(String.raw`^ *\d+: \w+:${hex} \w+:0000 0A \w+:(\w+)`, 'gm');
  const lines = readFileSync('/proc/net/tcp', 'utf8').matchAll(listening);
  return [...lines].reduce((sum, [, waiting = '']) => sum + Number.parseInt(waiting, 16), 0);
}
