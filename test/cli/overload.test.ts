/**
 * One client cannot block the others: not by sending many requests at once, nor by never reading, nor by
 * idle connections.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { maxPipelinedRequests } from '../../src/http/limits.ts';
import { call } from '../support/app.ts';
import { Connection } from '../support/connection.ts';
import { shared } from '../support/shared.ts';
import { until } from '../support/until.ts';
import { startTarget, listRequest, waitingConnections } from './overload.ts';

/** 8 MB as a list: more than the system's buffers hold for a connection. */
const plants = 10_000;
const maxFiles = 300;

describe('serve', () => {
  const ofFile = shared((t) => startTarget(t, plants));
  /** With some hundred connections. */
  const limited = shared((t) =>
    startTarget(t, 0, { under: ['sh', '-c', `ulimit -n ${maxFiles}; exec "$0" "$@"`] }),
  );

  it('responds to the first of many pipelined requests, then closes the connection with notice', async (t) => {
    const { service, other } = ofFile();
    const connection = new Connection(service.address);
    t.after(() => connection.socket.destroy());
    const many = 2_000; // in one write, which Node reads in pieces of 64 KiB
    connection.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(many));
    let answers = 0;
    for (let isLast = false; !isLast; answers++) {
      const answer = await connection.answer();
      assert.equal(answer?.status, 200);
      ({ isLast } = answer);
    }
    assert.ok(answers > maxPipelinedRequests && answers < many, `${answers} answers`);
    assert.equal(await connection.answer(), undefined);
    assert.equal((await call(`${service.address}/plants`, 'GET', { token: other })).status, 200);
  });

  it('responds to every request of a client that pipelines eight', async (t) => {
    const { service, greedy } = ofFile();
    const connection = new Connection(service.address);
    t.after(() => connection.socket.destroy());
    const body = '{"name":"Monstera"}';
    const create =
      `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${greedy}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const requests = 300;
    const send = (at: number) =>
      connection.write(
        at % 3 === 0 ? create : listRequest(greedy, `/plants?limit=100&after=${at % 50}&fields=id`),
      );
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
    const { service, greedy, open } = ofFile();
    for (let round = 0; round < 8; round++) {
      const sockets = await Promise.all(Array.from({ length: 16 }, open));
      for (const socket of sockets) socket.write(listRequest(greedy));
      const afterMs = round;
      await pause(afterMs);
      for (const socket of sockets) socket.resetAndDestroy();
    }
    const list = () => call(`${service.address}/plants`, 'GET', { token: greedy });
    await until('a list succeeds again', async () => (await list()).status === 200);
  });

  it('serves users while clients without a token leave documents unread', async () => {
    const { service, other, open } = limited();
    const document = 'GET /docs HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100);
    for (let at = 0; at < 200; at++) (await open()).write(document);
    // Each one closes another, which can be the next one here until its request arrives.
    await until('all are accepted', () => waitingConnections(service) === 0);
    for (let at = 0; at < 10; at++) {
      const connection = new Connection(service.address);
      connection.write(listRequest(other));
      assert.equal((await connection.answer())?.status, 200);
      connection.socket.destroy();
    }
  });

  it('lets long lists of a user wait until others are read, but serves short pages', async () => {
    const { service, greedy, open } = ofFile();
    const list = async () => {
      const socket = await open();
      socket.write(listRequest(greedy));
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
    const page = await call(`${service.address}/plants?limit=10`, 'GET', { token: greedy });
    assert.equal(page.status, 200);
    const created = { token: greedy, json: { name: 'one more' } };
    assert.equal((await call(`${service.address}/plants`, 'POST', created)).status, 201);
    assert.deepEqual(new Set(further.map(({ bytesRead }) => bytesRead)), new Set([0]));
    for (const socket of unread) socket.destroy();
    for (const socket of further) {
      assert.equal(await firstBytes(socket), 'HTTP/1.1 200');
      socket.destroy();
    }
  });

  it('responds to a client that has closed its side of the connection', async () => {
    const { other, open } = ofFile();
    const socket = await open();
    const body = '{"name":"Monstera"}';
    socket.end(
      `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${other}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    let received = '';
    socket
      .setEncoding('latin1')
      .on('data', (text) => (received += String(text)))
      .resume();
    await once(socket, 'close');
    assert.match(received, /^HTTP\/1\.1 201 /);
  });

  it('delivers the refusal of a body to a client that is still sending', async () => {
    const { service, other, open } = ofFile();
    for (let round = 0; round < 3; round++) {
      const socket = await open();
      const bytes = 4_000_000;
      socket.write(
        `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${other}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`,
      );
      // The client sends everything before it reads, as simple clients do.
      await new Promise((resolve) => socket.write('x'.repeat(bytes), resolve));
      let received = '';
      socket
        .setEncoding('latin1')
        .on('data', (text) => (received += String(text)))
        .resume();
      await once(socket, 'end');
      assert.match(received, /^HTTP\/1\.1 413 /);
      socket.destroy();
    }
    assert.equal((await call(`${service.address}/livez`, 'GET')).status, 200);
  });

  it('drops idle connections without a valid token first when connections run out', async (t) => {
    const { service, other, open } = limited();
    const known = new Connection(service.address);
    t.after(() => known.socket.destroy());
    const ask = async () => {
      known.write(listRequest(other));
      return (await known.answer())?.status;
    };
    assert.equal(await ask(), 200);
    let ended = 0;
    for (let at = 0; at < maxFiles; at++) {
      const stranger = await open();
      stranger.resume().once('close', () => ended++);
      if (at % 2 === 0) stranger.write('GET /livez HTT'); // and no more
    }
    await until('some have been dropped', () => ended >= maxFiles - 150);
    assert.match(service.log(), /"connections":100,"msg":"few open files allowed"/);
    assert.match(service.log(), /"connections":100,"msg":"connections are closed"/);
    assert.equal(await ask(), 200);
    assert.equal((await call(`${service.address}/plants`, 'GET', { token: other })).status, 200);
    const json = { name: 'Monstera' };
    const created = await call(`${service.address}/plants`, 'POST', { token: other, json });
    assert.equal(created.status, 201, 'the storage can open its files');
  });
});
