/**
 * CORS at the socket. test/client/browser.ts shows that a browser accepts it.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Page } from '../../tools/markdown.ts';
import { startApp } from '../support/app.ts';
import { Connection } from '../support/connection.ts';
import { exchange, request } from '../support/raw.ts';

const garden = 'https://garden.example';
const app = 'capacitor://localhost';
const exposed =
  'Accept-Patch, ETag, Idempotent-Replayed, Link, Location, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate';

/** The headers of a raw response that CORS adds, sorted. */
function corsHeaders(response: string): string[] {
  const [head = ''] = response.toLowerCase().split('\r\n\r\n');
  return head
    .split('\r\n')
    .filter((line) => /^(vary|access-control-)/.test(line))
    .toSorted();
}

it('exposes the headers that docs/reference/operation.md lists', () => {
  const page = new Page(new URL('../../docs/reference/operation.md', import.meta.url));
  const section = page.sections.find(({ heading }) => heading === 'Web pages of other origins');
  const [, list = ''] = /Pages can read\s([^]*?)\.\s/.exec(section?.text ?? '') ?? [];
  const listed = [...list.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
  assert.deepEqual(listed.toSorted(), exposed.split(', ').toSorted());
});

function allowed(origin: string): string[] {
  return [
    `access-control-allow-origin: ${origin}`,
    `access-control-expose-headers: ${exposed.toLowerCase()}`,
    'vary: origin',
  ];
}

const big = `X-Big: ${'a'.repeat(20_000)}`;

/** Requests that reach every place that responds, by the status of the response. */
function requests(alice: string, lines: readonly string[]): [bytes: string, status: number][] {
  const headers = ['Host: x', ...lines];
  const json = (body: string) => [
    ...headers,
    alice,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  const create = (body: string) => request('POST /plants', json(body), body);
  return [
    [create('{"name":"a","id":1}'), 201],
    [create('{"name":"a","id":1}'), 409],
    [create('{"name":1}'), 400],
    [create('x'.repeat(20_000)), 413],
    [request('GET /plants', [...headers, alice]), 200],
    [request('GET /plants', headers), 401],
    [request('GET /plants/2', [...headers, alice]), 404],
    [request('GET /nowhere', headers), 404],
    [request('GET /plants/%zz', headers), 400],
    [request('PUT /plants', headers), 405],
    [request('CONNECT x:80', headers), 405],
    [request('OPTIONS /plants', headers), 204],
    [request('OPTIONS /nowhere', headers), 404],
    [request('GET /plants', [...headers, 'Host: y']), 400],
    [request('GET /plants/1', [...headers, alice, 'If-None-Match: *']), 304],
    [request('DELETE /plants/1', [...headers, alice, 'If-Match: "x"']), 412],
    [request('DELETE /plants/1', [...headers, alice]), 204],
  ];
}

/** Requests that node:http cannot parse. */
function unparsed(lines: readonly string[]): [bytes: string, status: number][] {
  return [
    [request('GET /plants', ['Host: x', ...lines, big]), 431],
    [request('FLY /plants', ['Host: x', ...lines]), 501],
  ];
}

async function assertCorsHeaders(
  port: number,
  answers: readonly [bytes: string, status: number][],
  expected: readonly string[],
): Promise<void> {
  for (const [bytes, status] of answers) {
    const response = await exchange(port, bytes);
    assert.match(response, new RegExp(`^HTTP/1.1 ${status} `), bytes);
    assert.deepEqual(corsHeaders(response), expected, bytes.slice(0, 200));
  }
}

it('adds no header unless it is on', async (t) => {
  const { port, token } = await startApp(t);
  const alice = `Authorization: Bearer ${await token('alice')}`;
  const origin = [`Origin: ${garden}`];
  await assertCorsHeaders(port, [...requests(alice, origin), ...unparsed(origin)], []);
  const preflight = ['Host: x', ...origin, 'Access-Control-Request-Method: POST'];
  const answer = await exchange(port, request('OPTIONS /plants', preflight));
  assert.match(answer, /^HTTP\/1\.1 204 [^]*^allow: GET, HEAD, OPTIONS, POST\r$/m);
  assert.deepEqual(corsHeaders(answer), []);
});

it('lets pages of each named origin, and of no other, read every response', async (t) => {
  const { port, token } = await startApp(t, { corsOrigins: [garden, app] });
  const alice = `Authorization: Bearer ${await token('alice')}`;
  for (const origin of [garden, app]) {
    await assertCorsHeaders(port, requests(alice, [`Origin: ${origin}`]), allowed(origin));
  }
  const others = ['null', '*', `${garden}:8443`, `${garden}.evil.example`, 'http://garden.example'];
  for (const lines of [[], ...others.map((one) => [`Origin: ${one}`])]) {
    await assertCorsHeaders(port, requests(alice, lines), ['vary: origin']);
  }
  const two = [`Origin: ${garden}`, `Origin: ${app}`];
  await assertCorsHeaders(port, requests(alice, two), ['vary: origin']);
});

it('allows every origin with *', async (t) => {
  const { port, token } = await startApp(t, { corsOrigins: ['*'] });
  const alice = `Authorization: Bearer ${await token('alice')}`;
  const origin = [`Origin: ${garden}`];
  await assertCorsHeaders(port, requests(alice, origin), allowed('*'));
});

it('cannot name the origin of a request that it cannot parse', async (t) => {
  const { port } = await startApp(t, { corsOrigins: [garden] });
  await assertCorsHeaders(port, unparsed([`Origin: ${garden}`]), []);
});

it('answers a preflight without a token, with the methods of its path', async (t) => {
  const { port } = await startApp(t, { corsOrigins: [garden] });
  const paths = {
    '/plants': 'GET, HEAD, OPTIONS, POST',
    '/plants/1?fields=id': 'DELETE, GET, HEAD, OPTIONS, PATCH',
    '/plants/1/restore': 'OPTIONS, POST',
    '/livez': 'GET, HEAD, OPTIONS',
    '/openapi.json': 'GET, HEAD, OPTIONS',
    // So that a page can send the request, and read the 404.
    '/nowhere': 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT',
    '/plants/': 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT',
  };
  for (const [path, methods] of Object.entries(paths)) {
    for (const method of ['GET', 'DELETE', 'PATCH']) {
      const asked = `Access-Control-Request-Method: ${method}`;
      const headers = 'Access-Control-Request-Headers: authorization';
      const lines = ['Host: x', `Origin: ${garden}`, asked, headers];
      const answer = await exchange(port, request(`OPTIONS ${path}`, lines));
      assert.match(answer, /^HTTP\/1\.1 204 /, path);
      const [origin = '', ...others] = allowed(garden);
      assert.deepEqual(corsHeaders(answer), [
        'access-control-allow-headers: authorization, content-type, idempotency-key, if-match, if-none-match, user-agent, traceparent, tracestate, baggage, sentry-trace',
        `access-control-allow-methods: ${methods.toLowerCase()}`,
        origin,
        ...others.slice(0, 1),
        'access-control-max-age: 7200',
        ...others.slice(1),
      ]);
    }
  }
});

it('treats a preflight of another origin like any OPTIONS', async (t) => {
  const { port } = await startApp(t, { corsOrigins: [garden] });
  const asked = 'Access-Control-Request-Method: POST';
  for (const [path, status] of Object.entries({ '/plants': 204, '/nowhere': 404 })) {
    const lines = ['Host: x', 'Origin: https://evil.example', asked];
    const answer = await exchange(port, request(`OPTIONS ${path}`, lines));
    assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `));
    assert.deepEqual(corsHeaders(answer), ['vary: origin']);
  }
});

it('adds to the Vary of a document, and of its 304', async (t) => {
  const { address } = await startApp(t, { corsOrigins: [garden] });
  const headers = { origin: garden };
  const document = await fetch(`${address}/openapi.json`, { headers });
  assert.equal(document.headers.get('vary'), 'Accept-Encoding, Origin');
  const etag = document.headers.get('etag') ?? '';
  const cached = await fetch(`${address}/openapi.json`, {
    headers: { ...headers, 'if-none-match': etag },
  });
  assert.equal(cached.status, 304);
  assert.equal(cached.headers.get('vary'), 'Accept-Encoding, Origin');
  assert.equal(cached.headers.get('access-control-allow-origin'), garden);
});

it('adds its headers to each of several pipelined responses', async (t) => {
  const { address } = await startApp(t, { corsOrigins: [garden] });
  const connection = new Connection(address);
  const livez = `GET /livez HTTP/1.1\r\nHost: x\r\nOrigin: ${garden}\r\n\r\n`;
  connection.write(livez.repeat(3));
  for (let at = 0; at < 3; at++) {
    const answer = await connection.answer();
    assert.ok(answer?.headers.includes(`access-control-allow-origin: ${garden}`));
  }
  connection.socket.destroy();
});
