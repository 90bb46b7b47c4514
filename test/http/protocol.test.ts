/**
 * What only raw bytes can express: malformed requests, missing and repeated headers.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { inNewStore, startApp } from '../support/app.ts';
import { Connection } from '../support/connection.ts';
import { fileScope, itOnce as it } from '../support/storages.ts';
import { exchange, request } from '../support/raw.ts';

const app = await startApp(fileScope());
const { port, call } = app;

/** A user in a store of their own, and the header lines of their requests. */
async function newUser(...plants: readonly object[]) {
  const token = await inNewStore(app).token('alice');
  const alice = app.as(token);
  for (const json of plants) await alice('POST', '/plants', { json });
  return { alice, lines: ['Host: x', `Authorization: Bearer ${token}`] };
}

const plant = { name: 'a', id: 1 };
const body = '{"name":"a"}';
const json = 'Content-Type: application/json';
const length = `Content-Length: ${body.length}`;
const countResponses = (received: string) => received.match(/HTTP\/1\.1 \d/g)?.length;

/** Status, headers in lower case and JSON of an answer. */
function read(answer: string) {
  const [head = '', content = ''] = answer.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const pairs = lines.map((line) => line.toLowerCase().split(/: ?(.*)/s));
  const headers: Record<string, string> = Object.fromEntries(pairs);
  const isProblem = headers['content-type']?.startsWith('application/problem+json') === true;
  const status = Number(statusLine.split(' ')[1]);
  return { status, headers, problem: isProblem ? JSON.parse(content) : undefined };
}

const chunked = 'Transfer-Encoding: chunked';
const chunkedAnd = (coding: string) => `Transfer-Encoding: ${coding}, chunked`;

const lastChunk = '0\r\n\r\n';
const plus = (...lines: readonly string[]) => ['Host: x', ...lines];

/** Malformed requests by the status of their response. */
const broken: Record<string, Record<string, string>> = {
  400: {
    'bytes that are not HTTP': 'hello\r\n\r\n',
    'no Host': request('GET /plants', []),
    'two Hosts': request('GET /plants', ['Host: a', 'Host: b']),
    'two lengths': request('POST /plants', plus('Content-Length: 1', 'Content-Length: 2'), 'ab'),
    'a length and chunks': request('POST /plants', plus('Content-Length: 1', chunked), 'a'),
    'a broken escape in the path': request('GET /plants/%zz', plus()),
    'a body in two codings': request('POST /plants', plus(chunkedAnd('gzip')), lastChunk),
    'a coding that is not chunked': request('POST /plants', plus('Transfer-Encoding: gzip')),
    'a coding with a parameter': request('POST /plants', plus(`${chunked};q=1`), lastChunk),
    'chunks in HTTP/1.0': `POST /plants HTTP/1.0\r\n${chunked}\r\n\r\n${lastChunk}`,
    'an unknown coding and a broken path': request(
      'POST /%zz',
      plus(chunkedAnd('gzip')),
      lastChunk,
    ),
    'a fragment in the path': request('GET /plants#top', plus()),
    'a fragment in the query': request('GET /plants?tag=a#b', plus()),
    'an asterisk for the first slash': request('GET *livez', plus()),
  },
  404: { 'a path with a slash at its end': request('GET /plants/', plus()) },
  405: {
    'a known method that no path supports': request('PROPFIND /plants', plus()),
    'a tunnel to elsewhere': request('CONNECT plants.example:80', ['Host: plants.example:80']),
    'an asterisk with GET': request('GET *', plus()),
  },
  417: {
    'an unknown expectation': request('POST /plants', plus('Expect: x', 'Content-Length: 0')),
  },
  431: {
    'headers above 16 KiB': request('GET /plants', plus(`X-Big: ${'a'.repeat(20_000)}`)),
    'a URL above 16 KiB': request(`GET /plants?tag=${'a'.repeat(20_000)}`, plus()),
  },
  501: {
    'an unknown method': request('FLY /plants', plus()),
    'a method in lower case': request('get /plants', plus()),
    'a longer method': request('GETS /plants', plus()),
  },
  505: {
    'HTTP/2.0': 'GET /livez HTTP/2.0\r\nHost: x\r\n\r\n',
    'HTTP/3.0': 'GET /livez HTTP/3.0\r\nHost: x\r\n\r\n',
    'HTTP/0.9': 'GET /livez\r\n\r\n',
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  },
};

it('each malformed request gets its status with a problem and a request id', async () => {
  const all = Object.entries(broken).flatMap(([status, requests]) =>
    Object.entries(requests).map(([what, bytes]) => ({ what, bytes, status: Number(status) })),
  );
  for (const { what, bytes, status } of all) {
    const answer = read(await exchange(port, bytes));
    assert.equal(answer.status, status, what);
    assert.match(String(answer.headers['content-type']), /^application\/problem\+json/);
    assert.match(String(answer.headers['x-request-id']), /^[0-9a-f-]{36}$/);
    assert.ok(Date.parse(String(answer.headers['date'])), 'it has a date (RFC 9110, 6.6.1)');
    assertPrivate(answer.headers, what);
    assert.equal(answer.problem.status, status);
    assert.ok(answer.problem.detail.length > 20);
  }
});

it('forbids caching and media type guessing for every response', async () => {
  const { lines } = await newUser();
  for (const [bytes, status] of [
    [request('POST /plants', [...lines, json, length], body), 201],
    [request('GET /plants', lines), 200],
    [request('HEAD /plants/1', lines), 200],
    [request('DELETE /plants/1', lines), 204],
    [request('OPTIONS /plants', lines), 204],
    [request('GET /livez', lines), 200],
    [request('GET /readyz', lines), 200],
    [request('GET /plants', ['Host: x']), 401],
    [request('GET /nowhere', lines), 404],
  ] as const) {
    const answer = read(await exchange(port, bytes));
    assert.equal(answer.status, status, bytes);
    assertPrivate(answer.headers, bytes);
  }
});

/** No cache stores the response, and no browser guesses its type. */
function assertPrivate(headers: Record<string, string>, what: string): void {
  assert.equal(headers['cache-control'], 'no-store', what);
  assert.equal(headers['x-content-type-options'], 'nosniff', what);
}

const hosts = {
  200: 'x|x:|x:80||127.0.0.1:8080|[::1]|[2001:db8::1]:8080|a_b.%41|x:065535',
  400:
    'alice@x|alice:secret@x|http://x|x/plants|x?a|x#a|a b|a\tb|a, b|"x"|x:http|x:-1|x:65536|x:80:80|' +
    ':80:|::1|[::1|[::1]a|[x]|[fe80::1%eth0]|%4|%zz|\\|<x>|plänts.example',
};

it('returns 400 for an invalid Host', async () => {
  for (const [status, texts] of Object.entries(hosts)) {
    for (const host of texts.split('|')) {
      const answer = read(await exchange(port, request('GET /livez', [`Host: ${host}`])));
      assert.equal(answer.status, Number(status), host);
    }
  }
  assert.match(await exchange(port, 'GET /livez HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /);
});

it('uses the host of an absolute URL instead of the Host header', async () => {
  for (const [status, targets] of Object.entries({
    200: 'http://plants.example/livez HTTPS://[::1]:8080/livez http://x?/livez http://x',
    400: 'http://alice@x/livez http://x:65536/livez http:///livez http://?/livez',
    401: 'http://x/plants',
  })) {
    for (const target of targets.split(' ')) {
      const answer = await exchange(port, request(`GET ${target}`, ['Host: other.example']));
      assert.equal(answer.split(' ')[1], status, target);
    }
  }
  const wrong = await exchange(port, request('GET http://x/livez', ['Host: a b']));
  assert.match(wrong, /^HTTP\/1\.1 400 /);
});

it('returns the methods of the whole service for CONNECT and OPTIONS *', async () => {
  const allow = 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT'.toLowerCase();
  for (const bytes of ['0', '3']) {
    const lines = ['Host: x:80', `Content-Length: ${bytes}`];
    const { status, headers } = read(await exchange(port, request('CONNECT x:80', lines, 'ab')));
    assert.deepEqual([status, headers['allow'], headers['connection']], [405, allow, 'close']);
  }
  const { status, headers } = read(await exchange(port, request('OPTIONS *', ['Host: x'])));
  assert.deepEqual([status, headers['allow']], [204, allow]);
});

it('refuses an unknown coding alike whether it comes alone or among many', async () => {
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

it('keeps serving after clients send CONNECT and reset the connection', async () => {
  for (let at = 0; at < 20; at++) {
    const socket = connect({ host: '127.0.0.1', port });
    await once(socket, 'connect');
    socket.write(request('CONNECT x:80', ['Host: x:80']), () => socket.resetAndDestroy());
    await once(socket, 'close');
  }
  assert.equal((await call('GET', '/livez')).status, 200);
});

const tunnel = 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n';

it('responds to a request before CONNECT, refuses that, and executes none after it', async () => {
  const { alice, lines } = await newUser(plant);
  const sound = `GET /plants HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
  const answer = await exchange(port, sound + tunnel + request('DELETE /plants/1', lines));
  assert.match(
    answer,
    /^HTTP\/1\.1 200 [^]*\[\{"name":"a","tag":""\}\]HTTP\/1\.1 405 [^]*^connection: close\r$/im,
  );
  assert.equal(countResponses(answer), 2, answer);
  assert.equal((await alice('GET', '/plants/1')).status, 200);
});

it('sends the last response of a connection although CONNECT follows', async () => {
  const { alice, lines } = await newUser();
  await alice('GET', '/plants'); // so that its token is known, and the response is there when CONNECT is read
  const refused = `GET /plants HTTP/1.1\r\n${lines.join('\r\n').replace('Host: x', 'Host: a b')}\r\n\r\n`;
  const answer = await exchange(port, refused + tunnel);
  assert.equal(countResponses(answer), 1, answer);
  assert.match(answer, /^HTTP\/1\.1 400 [^]*^connection: close\r$/im);
});

it('reads no further request after one with an ambiguous end or a malformed head', async () => {
  const { alice, lines } = await newUser(plant);
  const follower = request('DELETE /plants/1', lines);
  for (const head of [
    ['POST /plants HTTP/1.1', chunkedAnd('gzip'), ...lines],
    ['POST /%zz HTTP/1.1', chunkedAnd('gzip'), ...lines],
    ['PUT /nowhere HTTP/1.1', chunkedAnd('gzip'), ...lines],
    ['POST /plants HTTP/1.1', chunkedAnd('gzip'), 'Expect: miracles', ...lines],
    ['POST /plants HTTP/1.0', chunked, 'Connection: keep-alive', ...lines],
    ['GET /livez HTTP/1.1'],
    ['GET /livez# HTTP/1.1', 'Host: x'],
  ]) {
    const end = head.some((line) => line.startsWith(chunked.slice(0, 17))) ? '0\r\n\r\n' : '';
    const answer = await exchange(port, `${head.join('\r\n')}\r\n\r\n${end}${follower}`);
    assert.match(answer, /^HTTP\/1\.1 4[^]*^connection: close\r$/im);
    assert.equal(countResponses(answer), 1, answer);
  }
  assert.equal((await alice('GET', '/plants/1')).status, 200);
});

it('keeps reading a refused body, so that the client gets the response', async () => {
  const bytes = 4_000_000;
  for (let turn = 0; turn < 10; turn++) {
    // A new token has to be looked up, and part of the body has come by then.
    const { lines } = await newUser();
    const head = request('POST /plants', [...lines, json, `Content-Length: ${bytes}`]);
    assert.match(await exchange(port, head + 'x'.repeat(bytes)), /^HTTP\/1\.1 413 /);
  }
});

it('executes no request after a response that closes the connection', async () => {
  const { alice, lines } = await newUser(plant);
  const head = ['POST /plants HTTP/1.1', ...lines, json, chunked].join('\r\n');
  const chunk = (bytes: number) => `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`;
  // The body becomes too large in the middle of what one read brings.
  const rest = `${chunk(13_000).repeat(3)}0\r\n\r\n${request('DELETE /plants/1', lines)}`;
  await Promise.all(
    Array.from({ length: 60 }, async (_, at) => {
      await pause(at * 5);
      const connection = new Connection(app.address);
      connection.write(`${head}\r\n\r\n${chunk(1_000)}`);
      await pause(30);
      connection.write(rest);
      assert.equal((await connection.answer())?.status, 413);
      assert.equal(await connection.answer(), undefined);
    }),
  );
  assert.equal((await alice('GET', '/plants/1')).status, 200);
});

it('accepts 100 headers, and refuses more instead of dropping some', async () => {
  const { lines } = await newUser();
  const answered = async (headers: number) => {
    const sound = [...lines, json, length];
    const more = headers - sound.length - 1; // request() adds one
    const many = Array.from({ length: more }, (_, at) => `a${at}:`);
    const answer = await exchange(port, request('POST /plants', [...many, ...sound], body));
    assert.equal(countResponses(answer), 1, answer);
    return read(answer).status;
  };
  const statuses = [await answered(100), await answered(101), await answered(2_500)];
  assert.deepEqual(statuses, [201, 431, 431]);
});

it('accepts lists of 64 members and paths of 4,096 characters, and refuses longer ones', async () => {
  const { alice } = await newUser(plant);
  const refusal = async (method: string, path: string, headers = {}) => {
    const patch = method === 'PATCH' ? { tag: 'b' } : undefined;
    const answer = await alice(method, path, { headers, json: patch });
    return answer.status === 400 ? (answer.json as { detail: string }).detail : answer.status;
  };
  for (const [name, method, status] of [
    ['If-None-Match', 'GET', 200],
    ['If-Match', 'PATCH', 412],
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
  const tooLong = await refusal('GET', `/${'%2f'.repeat(1_366)}?tag=a`);
  assert.equal(tooLong, 'Use a path of at most 4096 characters.');
});

it('refuses two Content-Types, with a body and without', async () => {
  const { lines } = await newUser();
  const headers = [...lines, json, json];
  for (const bytes of [
    request('POST /plants', [...headers, length], body),
    request('DELETE /plants/1', headers),
  ]) {
    const { status, problem } = read(await exchange(port, bytes));
    assert.equal(status, 400);
    assert.match(problem.detail, /exactly one Content-Type/);
  }
});

it('decodes paths for every method, but not %2F to a slash', async () => {
  const { lines } = await newUser();
  for (const [status, requests] of Object.entries({
    200: 'GET /%70lants',
    204: 'OPTIONS /%70lants|OPTIONS /pl%61nts/%31',
    400: 'PUT /%zz|OPTIONS /%ff',
    404: 'GET /%70lants/%31|GET /plants%2F1|OPTIONS /plants%2F1|PUT /plants%2f1|PUT /%2570lants',
    405: 'PUT /%70lants|PROPFIND /%70lants',
  })) {
    for (const firstLine of requests.split('|')) {
      const answer = read(await exchange(port, request(firstLine, lines)));
      assert.equal(answer.status, Number(status), firstLine);
    }
  }
});

it('responds once to each request of a connection: a refused one, a valid one, garbage', async () => {
  const { alice, lines } = await newUser();
  const post = (sent: string) => {
    const head = ['POST /plants HTTP/1.1', ...lines, json, `Content-Length: ${sent.length}`];
    return `${head.join('\r\n')}\r\n\r\n${sent}`;
  };
  const both = await exchange(port, post('{"name":1}') + request('GET /plants', lines));
  assert.match(both, /^HTTP\/1\.1 400 [^]*HTTP\/1\.1 200 OK[^]*\[\]$/);
  const garbage = ['GARBAGE\r\n\r\n', request('GET /', ['Host: x', `X: ${'a'.repeat(20_000)}`])];
  for (const follower of garbage) {
    const answer = await exchange(port, post(body) + follower);
    assert.equal(countResponses(answer), 1);
    assert.match(answer, /^HTTP\/1\.1 201 Created\r\n[^]*\{"name":"a","tag":""\}$/);
  }
  assert.equal(((await alice('GET', '/plants')).json as unknown[]).length, garbage.length);
});

it('responds to a request with a malformed body without waiting for the rest', async () => {
  const { alice, lines } = await newUser();
  const bytes = request('POST /plants', [...lines, json, chunked], 'ZZ\r\n{}\r\n');
  assert.match(await exchange(port, bytes), /^HTTP\/1\.1 400 /);
  assert.equal((await alice('GET', '/plants')).text, '[]');
});

it('asks for a body only if the head of its request is acceptable', async () => {
  const { lines } = await newUser();
  const [host = '', bearer = ''] = lines;
  const refused: [number, ...string[]][] = [
    [401, 'POST /plants HTTP/1.1', json, length],
    [404, 'POST /nowhere HTTP/1.1', bearer, json, length],
    [405, 'PUT /plants HTTP/1.1', bearer, json, length],
    [413, 'POST /plants HTTP/1.1', bearer, json, 'Content-Length: 20000'],
    [415, 'POST /plants HTTP/1.1', bearer, 'Content-Type: text/plain', length],
    [400, 'DELETE /plants/1 HTTP/1.1', bearer, json, length],
  ];
  const send = (connection: Connection, head: readonly string[]) =>
    connection.write([...head, host, 'Expect: 100-continue', '\r\n'].join('\r\n'));
  for (const [status, ...head] of refused) {
    const connection = new Connection(app.address);
    send(connection, head);
    const answer = await connection.answer();
    // The client need not send the body, so the next bytes can be anything.
    assert.deepEqual([answer?.status, answer?.isLast], [status, true], String(head[0]));
    await connection.closed();
  }
  const connection = new Connection(app.address);
  for (let turn = 0; turn < 2; turn++) {
    send(connection, ['POST /plants HTTP/1.1', bearer, json, length]);
    assert.equal((await connection.answer())?.status, 100);
    connection.write(body);
    assert.equal((await connection.answer())?.status, 201);
  }
  connection.socket.destroy();
});

it('responds once, even if the body breaks after the response', async () => {
  const head = 'POST /plants HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  for (const rest of ['ZZ\r\n', '0\r\nContent-Length: 5\r\n\r\n', undefined]) {
    const connection = new Connection(app.address);
    connection.write(head);
    assert.equal((await connection.answer())?.status, 401);
    if (rest === undefined) connection.socket.end();
    else connection.write(rest);
    assert.equal(await connection.answer(), undefined);
  }
});
