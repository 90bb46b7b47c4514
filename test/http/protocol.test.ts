/**
 * What only raw bytes can express: malformed requests, missing and repeated headers.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { startApp } from '../support/app.ts';
import { Connection } from '../support/connection.ts';
import { itOnce as it } from '../support/storages.ts';
import { exchange, request } from '../support/raw.ts';

/** Status, headers in lower case and problem of an answer. */
function read(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(lines.map((line) => line.toLowerCase().split(/: ?(.*)/s)));
  return { status: Number(statusLine.split(' ')[1]), headers, problem: JSON.parse(body) };
}

const chunked = 'Transfer-Encoding: chunked';
const chunkedAnd = (coding: string) => `Transfer-Encoding: ${coding}, chunked`;

const broken: Record<string, [bytes: string, status: number]> = {
  'bytes that are not HTTP': ['hello\r\n\r\n', 400],
  'an unknown method': [request('FLY /plants', ['Host: x']), 501],
  'a method in lower case': [request('get /plants', ['Host: x']), 501],
  'a longer method': [request('GETS /plants', ['Host: x']), 501],
  'a known method that no path supports': [request('PROPFIND /plants', ['Host: x']), 405],
  'HTTP/2.0': ['GET /livez HTTP/2.0\r\nHost: x\r\n\r\n', 505],
  'HTTP/3.0': ['GET /livez HTTP/3.0\r\nHost: x\r\n\r\n', 505],
  'HTTP/0.9': ['GET /livez\r\n\r\n', 505],
  'the preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
  'no Host': [request('GET /plants', []), 400],
  'two Hosts': [request('GET /plants', ['Host: a', 'Host: b']), 400],
  'two lengths': [
    request('POST /plants', ['Host: x', 'Content-Length: 1', 'Content-Length: 2'], 'ab'),
    400,
  ],
  'a length and chunks': [
    request('POST /plants', ['Host: x', 'Content-Length: 1', 'Transfer-Encoding: chunked'], 'a'),
    400,
  ],
  'a broken escape in the path': [request('GET /plants/%zz', ['Host: x']), 400],
  'headers above 16 KiB': [
    request('GET /plants', ['Host: x', `X-Big: ${'a'.repeat(20_000)}`]),
    431,
  ],
  'a URL above 16 KiB': [request(`GET /plants?tag=${'a'.repeat(20_000)}`, ['Host: x']), 431],
  'an expectation that is not known': [
    request('POST /plants', ['Host: x', 'Expect: miracles', 'Content-Length: 0']),
    417,
  ],
  'a tunnel to elsewhere': [request('CONNECT plants.example:80', ['Host: plants.example:80']), 405],
  'a body in two codings': [
    request('POST /plants', ['Host: x', chunkedAnd('gzip')], '0\r\n\r\n'),
    400,
  ],
  'a coding that is not chunked': [
    request('POST /plants', ['Host: x', 'Transfer-Encoding: gzip']),
    400,
  ],
  'a coding with a parameter': [
    request('POST /plants', ['Host: x', 'Transfer-Encoding: chunked;q=1'], '0\r\n\r\n'),
    400,
  ],
  'chunks in HTTP/1.0': [`POST /plants HTTP/1.0\r\n${chunked}\r\n\r\n0\r\n\r\n`, 400],
  'an unknown coding and a broken path': [
    request('POST /%zz', ['Host: x', chunkedAnd('gzip')], '0\r\n\r\n'),
    400,
  ],
  'a fragment in the path': [request('GET /plants#top', ['Host: x']), 400],
  'a fragment in the query': [request('GET /plants?tag=a#b', ['Host: x']), 400],
  'an asterisk with GET': [request('GET *', ['Host: x']), 405],
  'an asterisk for the first slash': [request('GET *livez', ['Host: x']), 400],
  'a path with a slash at its end': [request('GET /plants/', ['Host: x']), 404],
};

for (const [what, [bytes, status]] of Object.entries(broken)) {
  it(`returns ${status} with a problem and a request id for ${what}`, async (t) => {
    const { port } = await startApp(t);
    const answer = read(await exchange(port, bytes));
    assert.equal(answer.status, status);
    assert.match(String(answer.headers['content-type']), /^application\/problem\+json/);
    assert.match(String(answer.headers['x-request-id']), /^[0-9a-f-]{36}$/);
    assert.ok(Date.parse(String(answer.headers['date'])), 'it has a date (RFC 9110, 6.6.1)');
    assert.equal(answer.problem.status, status);
    assert.ok(answer.problem.detail.length > 20);
  });
}

const hosts = {
  200: 'x|x:|x:80||127.0.0.1:8080|[::1]|[2001:db8::1]:8080|a_b.%41|x:065535',
  400:
    'alice@x|alice:secret@x|http://x|x/plants|x?a|x#a|a b|a\tb|a, b|"x"|x:http|x:-1|x:65536|x:80:80|' +
    ':80:|::1|[::1|[::1]a|[x]|[fe80::1%eth0]|%4|%zz|\\|<x>|plänts.example',
};

for (const [status, texts] of Object.entries(hosts)) {
  it(`returns ${status} for ${status === '200' ? 'a valid' : 'an invalid'} Host`, async (t) => {
    const { port } = await startApp(t);
    for (const host of texts.split('|')) {
      const answer = read(await exchange(port, request('GET /livez', [`Host: ${host}`])));
      assert.equal(answer.status, Number(status), host);
    }
  });
}

it('uses the host of an absolute URL instead of the Host header', async (t) => {
  const { port } = await startApp(t);
  const statuses = {
    'http://plants.example/livez': 200,
    'HTTPS://[::1]:8080/livez': 200,
    'http://alice@x/livez': 400,
    'http://x:65536/livez': 400,
    'http:///livez': 400,
    'http://?/livez': 400,
    'http://x?/livez': 200,
    'http://x': 200,
  };
  for (const [target, status] of Object.entries(statuses)) {
    const answer = await exchange(port, request(`GET ${target}`, ['Host: other.example']));
    assert.equal(answer.split(' ')[1], String(status), target);
  }
  const wrong = await exchange(port, request('GET http://x/livez', ['Host: a b']));
  assert.match(wrong, /^HTTP\/1\.1 400 /);
});

it('needs no Host in HTTP/1.0', async (t) => {
  const { port } = await startApp(t);
  assert.match(await exchange(port, 'GET /livez HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /);
});

it('returns the allowed methods for CONNECT', async (t) => {
  const { port } = await startApp(t);
  for (const length of [0, 3]) {
    const headers = ['Host: x:80', `Content-Length: ${length}`];
    const answer = await exchange(port, request('CONNECT x:80', headers, 'ab'));
    assert.match(answer, /^allow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r$/im);
    assert.match(answer, /^connection: close\r$/im);
  }
});

it('refuses an unknown coding alike whether it comes alone or among many', async (t) => {
  const { port } = await startApp(t);
  const sockets = Array.from({ length: 50 }, () => connect({ host: '127.0.0.1', port }));
  const alive = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n';
  for (const socket of sockets) socket.write(alive);
  await Promise.all(sockets.map((socket) => once(socket, 'data')));
  const odd = request('DELETE /plants/1', ['Host: x', 'Transfer-Encoding: identity']);
  for (const socket of sockets) socket.end(odd);
  for (const answer of await Promise.all(sockets.map((socket) => text(socket)))) {
    assert.match(answer, /HTTP\/1\.1 400 [^]*Send the body with Content-Length/);
  }
});

it('keeps serving after clients send CONNECT and reset the connection', async (t) => {
  const { port, call } = await startApp(t);
  for (let at = 0; at < 20; at++) {
    const socket = connect({ host: '127.0.0.1', port });
    await once(socket, 'connect');
    socket.write(request('CONNECT x:80', ['Host: x:80']), () => socket.resetAndDestroy());
    await once(socket, 'close');
  }
  assert.equal((await call('GET', '/livez')).status, 200);
});

it('responds to a request before CONNECT, refuses that, and executes none after it', async (t) => {
  const { port, token, call } = await startApp(t);
  const alice = await token('alice');
  await call('POST', '/plants', { token: alice, json: { name: 'a', id: 1 } });
  const headers = ['Host: x', `Authorization: Bearer ${alice}`];
  const sound = `GET /plants HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`;
  const follower = request('DELETE /plants/1', headers);
  const tunnel = 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n';
  const answer = await exchange(port, sound + tunnel + follower);
  assert.match(
    answer,
    /^HTTP\/1\.1 200 [^]*\[\{"name":"a","tag":""\}\]HTTP\/1\.1 405 [^]*^connection: close\r$/im,
  );
  assert.equal(answer.match(/HTTP\/1\.1 \d/g)?.length, 2, answer);
  assert.equal((await call('GET', '/plants/1', { token: alice })).status, 200);
});

it('reads no further request after one with an ambiguous end', async (t) => {
  const { port, token, call } = await startApp(t);
  const alice = await token('alice');
  await call('POST', '/plants', { token: alice, json: { name: 'a', id: 1 } });
  const headers = ['Host: x', `Authorization: Bearer ${alice}`];
  const follower = request('DELETE /plants/1', headers);
  const uncertain = [
    [`POST /plants HTTP/1.1`, chunkedAnd('gzip')],
    [`POST /%zz HTTP/1.1`, chunkedAnd('gzip')],
    [`PUT /nowhere HTTP/1.1`, chunkedAnd('gzip')],
    [`POST /plants HTTP/1.1`, chunkedAnd('gzip'), 'Expect: miracles'],
    [`POST /plants HTTP/1.0`, chunked, 'Connection: keep-alive'],
  ];
  for (const [line = '', ...framing] of uncertain) {
    const head = [line, ...framing, ...headers].join('\r\n');
    const answer = await exchange(port, `${head}\r\n\r\n0\r\n\r\n${follower}`);
    assert.equal(answer.match(/HTTP\/1\.1 \d/g)?.length, 1, answer);
    assert.match(answer, /^connection: close\r$/im);
  }
  assert.equal((await call('GET', '/plants/1', { token: alice })).status, 200);
});

it('closes the connection after a request with a malformed head', async (t) => {
  const { port } = await startApp(t);
  const follower = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n';
  for (const head of ['GET /livez HTTP/1.1', 'GET /livez# HTTP/1.1\r\nHost: x']) {
    const answer = await exchange(port, `${head}\r\n\r\n${follower}`);
    assert.match(answer, /^HTTP\/1\.1 400 /);
    assert.equal(answer.match(/HTTP\/1\.1 \d/g)?.length, 1, answer);
    assert.match(answer, /^connection: close\r$/im);
  }
});

it('names the media type that it accepts in a 415', async (t) => {
  const { call, token } = await startApp(t);
  const alice = await token('alice');
  const json = { 'content-type': 'application/json' };
  const refused = [{ 'content-type': 'text/plain' }, { ...json, 'content-encoding': 'gzip' }];
  for (const headers of refused) {
    const answer = await call('POST', '/plants', { token: alice, body: '{"name":"a"}', headers });
    assert.equal(answer.status, 415);
    assert.equal(answer.headers.get('accept'), 'application/json');
    assert.equal(answer.headers.get('accept-encoding'), 'identity');
  }
});

it('keeps reading a refused body, so that the client gets the response', async (t) => {
  const { port, token } = await startApp(t);
  const type = 'Content-Type: application/json';
  const bytes = 4_000_000;
  for (let turn = 0; turn < 10; turn++) {
    // A new token has to be looked up, and part of the body has come by then.
    const headers = ['Host: x', `Authorization: Bearer ${await token('alice')}`, type];
    const head = request('POST /plants', [...headers, `Content-Length: ${bytes}`]);
    assert.match(await exchange(port, head + 'x'.repeat(bytes)), /^HTTP\/1\.1 413 /);
  }
});

it('executes no request after a response that closes the connection', async (t) => {
  const { port, token, call } = await startApp(t);
  const alice = await token('alice');
  await call('POST', '/plants', { token: alice, json: { name: 'a', id: 1 } });
  const headers = ['Host: x', `Authorization: Bearer ${alice}`];
  const type = 'Content-Type: application/json';
  const head = ['POST /plants HTTP/1.1', ...headers, type, chunked].join('\r\n');
  const chunk = (bytes: number) => `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`;
  // The body becomes too large in the middle of what one read brings.
  const rest = `${chunk(13_000).repeat(3)}0\r\n\r\n${request('DELETE /plants/1', headers)}`;
  await Promise.all(
    Array.from({ length: 60 }, async (_, at) => {
      await pause(at * 5);
      const connection = new Connection(`http://127.0.0.1:${port}`);
      connection.write(`${head}\r\n\r\n${chunk(1_000)}`);
      await pause(30);
      connection.write(rest);
      assert.equal((await connection.answer())?.status, 413);
      assert.equal(await connection.answer(), undefined);
    }),
  );
  assert.equal((await call('GET', '/plants/1', { token: alice })).status, 200);
});

it('accepts 100 headers, and refuses more instead of dropping some', async (t) => {
  const { port, token } = await startApp(t);
  const needed = ['Host: x', `Authorization: Bearer ${await token('alice')}`];
  const body = '{"name":"a"}';
  const answered = async (headers: number) => {
    const sound = [...needed, 'Content-Type: application/json', 'Content-Length: 12'];
    const more = headers - sound.length - 1; // request() adds one
    const many = Array.from({ length: more }, (_, at) => `a${at}:`);
    const answer = await exchange(port, request('POST /plants', [...many, ...sound], body));
    assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1, answer);
    return Number(answer.split(' ')[1]);
  };
  assert.deepEqual(
    [await answered(100), await answered(101), await answered(102), await answered(2_500)],
    [201, 431, 431, 431],
  );
});

it('accepts lists of 64 members and paths of 4,096 characters, and refuses longer ones', async (t) => {
  const app = await startApp(t);
  const token = await app.token('alice');
  await app.call('POST', '/plants', { token, json: { name: 'a', id: 1 } });
  const refusal = async (method: string, path: string, headers = {}) => {
    const json = method === 'PATCH' ? { tag: 'b' } : undefined;
    const answer = await app.call(method, path, { token, headers, json });
    return answer.status === 400 ? (answer.json as { detail: string }).detail : answer.status;
  };
  for (const [name, method, status] of [
    ['If-None-Match', 'GET', 200],
    ['If-Match', 'PATCH', 412],
    ['Accept', 'GET', 200],
    ['Accept-Encoding', 'GET', 200],
  ] as const) {
    for (const member of ['', '"a"']) {
      const list = (members: number) => ({ [name]: `${`${member},`.repeat(members - 1)}"a"` });
      assert.equal(await refusal(method, '/plants/1', list(64)), status, name);
      const detail = `Send at most 64 members in "${name}", empty ones included.`;
      for (const members of [65, 3_500]) {
        assert.equal(await refusal(method, '/plants/1', list(members)), detail);
      }
    }
  }
  const typed = (parameters: number) =>
    refusal('PATCH', '/plants/1', {
      'content-type': `application/json${';'.repeat(parameters)}; charset=utf-8`,
    });
  assert.equal(await typed(62), 200);
  assert.equal(await typed(63), 'Send at most 64 members in "Content-Type", empty ones included.');
  const query = (parameters: number) => `/plants?${'&'.repeat(parameters - 1)}tag=a`;
  assert.equal(await refusal('GET', query(64)), 200);
  assert.equal(await refusal('GET', query(65)), 'Send at most 64 parameters in the URL.');
  assert.equal(await refusal('GET', `/${'&'.repeat(65)}?tag=a`), 404);
  assert.match(String(await refusal('GET', `/plants?fields=${'id,'.repeat(5_000)}`)), /"fields"/);
  assert.equal(await refusal('GET', `/${'%2f'.repeat(1_365)}`), 404);
  assert.equal(
    await refusal('GET', `/${'%2f'.repeat(1_366)}?tag=a`),
    'Use a path of at most 4096 characters.',
  );
});

it('refuses two Content-Types, with a body and without', async (t) => {
  const { port, token } = await startApp(t);
  const type = 'Content-Type: application/json';
  const headers = ['Host: x', `Authorization: Bearer ${await token('alice')}`, type, type];
  const body = '{"name":"a"}';
  for (const bytes of [
    request('POST /plants', [...headers, `Content-Length: ${body.length}`], body),
    request('DELETE /plants/1', headers),
  ]) {
    const { status, problem } = read(await exchange(port, bytes));
    assert.equal(status, 400);
    assert.match(problem.detail, /exactly one Content-Type/);
  }
});

it('decodes paths for every method, but not %2F to a slash', async (t) => {
  const { port, token } = await startApp(t);
  const alice = `Authorization: Bearer ${await token('alice')}`;
  const statuses = {
    'GET /%70lants': 200,
    'GET /%70lants/%31': 404,
    'OPTIONS /%70lants': 204,
    'OPTIONS /pl%61nts/%31': 204,
    'PUT /%70lants': 405,
    'PROPFIND /%70lants': 405,
    'GET /plants%2F1': 404,
    'OPTIONS /plants%2F1': 404,
    'PUT /plants%2f1': 404,
    'PUT /%2570lants': 404,
    'PUT /%zz': 400,
    'OPTIONS /%ff': 400,
  };
  for (const [firstLine, status] of Object.entries(statuses)) {
    const answer = await exchange(port, request(firstLine, ['Host: x', alice]));
    assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `), firstLine);
  }
});

it('forbids caching and media type guessing for every response', async (t) => {
  const { port, token } = await startApp(t);
  const alice = ['Host: x', `Authorization: Bearer ${await token('alice')}`];
  const body = '{"name":"a"}';
  const typed = [...alice, 'Content-Type: application/json', `Content-Length: ${body.length}`];
  const answers: [bytes: string, status: number][] = [
    [request('POST /plants', typed, body), 201],
    [request('GET /plants', alice), 200],
    [request('HEAD /plants/1', alice), 200],
    [request('DELETE /plants/1', alice), 204],
    [request('OPTIONS /plants', alice), 204],
    [request('GET /livez', alice), 200],
    [request('GET /readyz', alice), 200],
    [request('GET /plants', ['Host: x']), 401],
    [request('GET /nowhere', alice), 404],
    ...Object.values(broken),
  ];
  for (const [bytes, status] of answers) {
    const answer = await exchange(port, bytes);
    assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `), bytes);
    assert.match(answer, /^cache-control: no-store\r$/im, bytes);
    assert.match(answer, /^x-content-type-options: nosniff\r$/im, bytes);
  }
});

it('returns the methods of the whole service for OPTIONS *', async (t) => {
  const { port } = await startApp(t);
  const answer = await exchange(port, request('OPTIONS *', ['Host: x']));
  assert.match(answer, /^HTTP\/1\.1 204 /);
  assert.match(answer, /^allow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r$/m);
});

it('keeps serving a connection after a refused request', async (t) => {
  const { port, token } = await startApp(t);
  const authorization = `Authorization: Bearer ${await token('alice')}`;
  const body = '{"name":1}';
  const type = 'Content-Type: application/json';
  const refused = `POST /plants HTTP/1.1\r\nHost: x\r\n${authorization}\r\n${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const answer = await exchange(port, refused + request('GET /plants', ['Host: x', authorization]));
  assert.match(answer, /^HTTP\/1\.1 400 /);
  assert.match(answer, /HTTP\/1\.1 200 OK[\s\S]*\[\]$/);
});

it('responds once if garbage follows a valid request', async (t) => {
  const { port, token, call } = await startApp(t);
  const alice = await token('alice');
  const headers = ['Host: x', `Authorization: Bearer ${alice}`, 'Content-Type: application/json'];
  const body = '{"name":"a"}';
  const sound = `POST /plants HTTP/1.1\r\n${headers.join('\r\n')}\r\nContent-Length: 12\r\n\r\n${body}`;
  const followers = ['GARBAGE\r\n\r\n', request('GET /', ['Host: x', `X: ${'a'.repeat(20_000)}`])];
  for (const follower of followers) {
    const answer = await exchange(port, sound + follower);
    assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1);
    assert.match(answer, /^HTTP\/1\.1 201 Created\r\n[^]*\{"name":"a","tag":""\}$/);
  }
  const { json } = await call('GET', '/plants', { token: alice });
  assert.equal((json as unknown[]).length, followers.length);
});

it('accepts an absolute URL as the target', async (t) => {
  const { port } = await startApp(t);
  const answer = await exchange(port, request('PUT http://x/plants', ['Host: x']));
  assert.match(answer, /^HTTP\/1\.1 405 /);
});

it('responds to a request with a malformed body without waiting for the rest', async (t) => {
  const { port, token, call } = await startApp(t);
  const alice = await token('alice');
  const headers = ['Host: x', `Authorization: Bearer ${alice}`, 'Content-Type: application/json'];
  const answer = await exchange(
    port,
    request('POST /plants', [...headers, chunked], 'ZZ\r\n{}\r\n'),
  );
  assert.match(answer, /^HTTP\/1\.1 400 /);
  assert.equal((await call('GET', '/plants', { token: alice })).text, '[]');
});

it('asks for a body only if the head of its request is acceptable', async (t) => {
  const { address, token } = await startApp(t);
  const bearer = `Authorization: Bearer ${await token('alice')}`;
  const json = 'Content-Type: application/json';
  const body = '{"name":"a"}';
  const length = `Content-Length: ${body.length}`;
  const refused: [number, ...string[]][] = [
    [401, 'POST /plants HTTP/1.1', json, length],
    [404, 'POST /nowhere HTTP/1.1', bearer, json, length],
    [405, 'PUT /plants HTTP/1.1', bearer, json, length],
    [413, 'POST /plants HTTP/1.1', bearer, json, 'Content-Length: 20000'],
    [415, 'POST /plants HTTP/1.1', bearer, 'Content-Type: text/plain', length],
    [400, 'DELETE /plants/1 HTTP/1.1', bearer, json, length],
  ];
  const send = (connection: Connection, lines: readonly string[]) =>
    connection.write([...lines, 'Host: x', 'Expect: 100-continue', '\r\n'].join('\r\n'));
  for (const [status, ...lines] of refused) {
    const connection = new Connection(address);
    send(connection, lines);
    const answer = await connection.answer();
    // The client need not send the body, so the next bytes can be anything.
    assert.deepEqual([answer?.status, answer?.isLast], [status, true], String(lines[0]));
    await connection.closed();
  }
  const connection = new Connection(address);
  for (let turn = 0; turn < 2; turn++) {
    send(connection, ['POST /plants HTTP/1.1', bearer, json, length]);
    assert.equal((await connection.answer())?.status, 100);
    connection.write(body);
    assert.equal((await connection.answer())?.status, 201);
  }
  connection.socket.destroy();
});

it('responds once, even if the body breaks after the response', async (t) => {
  const { address } = await startApp(t);
  const head = 'POST /plants HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  for (const rest of ['ZZ\r\n', '0\r\nContent-Length: 5\r\n\r\n', undefined]) {
    const connection = new Connection(address);
    connection.write(head);
    assert.equal((await connection.answer())?.status, 401);
    if (rest === undefined) connection.socket.end();
    else connection.write(rest);
    assert.equal(await connection.answer(), undefined);
  }
});
