import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { startApp } from './support/app.ts';
import { balance, noBalancer as skip } from './support/balancer.ts';
import { Connection } from './support/connection.ts';

describe('behind the balancer of the documentation', { concurrency: 2 }, () => {
  it('accepts every request that the service accepts', { skip }, async (t) => {
    const { send, post } = await start(t);
    const body = '{"name":"Monstera"}'.padEnd(16_384);
    assert.equal((await send(post(body)))?.status, 201);
    assert.equal((await send(post(`${body} `)))?.status, 413);
    // Both at their largest; with X-Fill and what the balancer leaves out, 16,384 bytes.
    assert.equal((await send(post(body, `X-Fill: ${'a'.repeat(15_800)}`)))?.status, 201);
    assert.equal((await send(post(body, `X-Fill: ${'a'.repeat(16_400)}`)))?.status, 431);
    assert.equal((await send(post('{}', 'Expect: something')))?.status, 417);
  });

  it('a client that waits for "100 Continue" gets it, and its response', { skip }, async (t) => {
    const { open, post } = await start(t);
    const [head = '', body = ''] = post('{"name":"Monstera"}', 'Expect: 100-continue').split(
      /(?<=\r\n\r\n)/,
    );
    const connection = open();
    connection.write(head);
    assert.equal((await connection.answer())?.status, 100);
    connection.write(body);
    assert.equal((await connection.answer())?.status, 201);
  });

  it(
    'a body in chunks arrives whole, and the connection serves another request',
    { skip },
    async (t) => {
      const { open, post } = await start(t);
      const connection = open();
      const head = post('', 'Transfer-Encoding: chunked').replace(/Content-Length: 0\r\n/, '');
      for (const bytes of [
        head,
        '8\r\n{"name":\r\n',
        '8\r\n"Monster\r\n',
        '3\r\na"}\r\n',
        '0\r\n\r\n',
      ]) {
        connection.write(bytes);
      }
      const answer = await connection.answer();
      assert.equal(answer?.status, 201);
      assert.ok(
        !answer.headers.some((line) => line.startsWith('keep-alive')),
        'no hint of a replica',
      );
      connection.write(post('{"name":"Ficus"}'));
      assert.equal((await connection.answer())?.status, 201);
    },
  );
});

async function start(t: TestContext) {
  const app = await startApp(t);
  const address = await balance(t, [app.address]);
  const token = await app.token('alice');
  const open = () => {
    const connection = new Connection(address);
    t.after(() => connection.socket.destroy());
    return connection;
  };
  const post = (body: string, ...more: string[]) =>
    [
      'POST /plants HTTP/1.1',
      'Host: x',
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      ...more,
      '',
      body,
    ].join('\r\n');
  const send = (bytes: string) => {
    const connection = open();
    connection.write(bytes);
    return connection.answer();
  };
  return { open, post, send };
}
