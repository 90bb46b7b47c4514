/**
 * CORS at the socket. test/client/browser.ts shows that a browser accepts it.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Page } from '../../tools/markdown.ts';
import { startApp } from '../support/app.ts';
import { Connection } from '../support/connection.ts';
import { exchange, request } from '../support/raw.ts';
import { fileScope } from '../support/storages.ts';

const garden = 'https://garden.example';
const native = 'capacitor://localhost';
const shared = await startApp(fileScope(), { corsOrigins: [garden] });
const exposed =
  'Accept-Patch, Change-Position, ETag, Idempotent-Replayed, Link, Location, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Total-Count, WWW-Authenticate';

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

/** Header lines of requests from these origins. */
const originsOf = (...origins: string[]) => origins.map((origin) => `Origin: ${origin}`);

it('adds no header unless it is on', async (t) => {
  const { port, token } = await startApp(t);
  const alice = `Authorization: Bearer ${await token('alice')}`;
  const lines = originsOf(garden);
  await assertCorsHeaders(port, [...requests(alice, lines), ...unparsed(lines)], []);
  const preflight = ['Host: x', ...lines, 'Access-Control-Request-Method: POST'];
  const answer = await exchange(port, request('OPTIONS /plants', preflight));
  assert.match(answer, /^HTTP\/1\.1 204 [^]*^allow: GET, HEAD, OPTIONS, POST\r$/m);
  assert.deepEqual(corsHeaders(answer), []);
});

it('lets pages of each named origin, and of no other, read every response', async (t) => {
  const { port, token } = await startApp(t, { corsOrigins: [garden, native] });
  const alice = `Authorization: Bearer ${await token('alice')}`;
  for (const origin of [garden, native])
    await assertCorsHeaders(port, requests(alice, originsOf(origin)), allowed(origin));
  const evil = `${garden}.evil.example`;
  for (const origins of [[], ['null'], ['*'], [`${garden}:8443`], [evil], [garden, native]])
    await assertCorsHeaders(port, requests(alice, originsOf(...origins)), ['vary: origin']);
  const insecure = requests(alice, originsOf(garden.replace('https', 'http')));
  await assertCorsHeaders(port, insecure, ['vary: origin']);
  // The origin of a request that cannot be parsed is not known.
  await assertCorsHeaders(port, unparsed(originsOf(garden)), []);
});

it('allows every origin with *', async (t) => {
  const { port, token } = await startApp(t, { corsOrigins: ['*'] });
  const alice = `Authorization: Bearer ${await token('alice')}`;
  await assertCorsHeaders(port, requests(alice, originsOf(garden)), allowed('*'));
});

it('a preflight gets the methods of its path without a token', async () => {
  const any = 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT';
  for (const [path, methods] of [
    ['/plants', 'GET, HEAD, OPTIONS, POST'],
    ['/plants/1?fields=id', 'DELETE, GET, HEAD, OPTIONS, PATCH'],
    ['/plants/1/restore', 'OPTIONS, POST'],
    ['/livez', 'GET, HEAD, OPTIONS'],
    ['/openapi.json', 'GET, HEAD, OPTIONS'],
    ['/nowhere', any], // so that a page can send the request, and read the 404
    ['/plants/', any],
  ] as const) {
    for (const method of ['GET', 'DELETE', 'PATCH']) {
      const asked = `Access-Control-Request-Method: ${method}`;
      const lines = [...originsOf(garden), asked, 'Access-Control-Request-Headers: authorization'];
      const answer = await exchange(shared.port, request(`OPTIONS ${path}`, ['Host: x', ...lines]));
      assert.match(answer, /^HTTP\/1\.1 204 /, path);
      const expected = [
        'access-control-allow-headers: authorization, content-type, idempotency-key, if-match, if-none-match, user-agent, traceparent, tracestate, baggage, sentry-trace',
        `access-control-allow-methods: ${methods.toLowerCase()}`,
        'access-control-max-age: 7200',
        ...allowed(garden),
      ];
      assert.deepEqual(corsHeaders(answer), expected.toSorted());
    }
  }
  // One of another origin is like any OPTIONS.
  for (const [path, status] of Object.entries({ '/plants': 204, '/nowhere': 404 })) {
    const lines = [
      'Host: x',
      ...originsOf('https://evil.example'),
      'Access-Control-Request-Method: POST',
    ];
    const bytes = request(`OPTIONS ${path}`, lines);
    await assertCorsHeaders(shared.port, [[bytes, status]], ['vary: origin']);
  }
});

it('the Vary of a document, and of its 304, has the origin too', async () => {
  const load = (headers: Record<string, string>) =>
    shared.call('GET', '/openapi.json', { headers: { origin: garden, ...headers } });
  const { headers } = await load({});
  const cached = await load({ 'if-none-match': headers.get('etag') ?? '' });
  assert.equal(cached.status, 304);
  for (const each of [headers, cached.headers]) {
    assert.equal(each.get('vary'), 'Accept-Encoding, Origin');
    assert.equal(each.get('access-control-allow-origin'), garden);
  }
});

it('each of several pipelined responses has the headers', async () => {
  const connection = new Connection(shared.address);
  const livez = `GET /livez HTTP/1.1\r\nHost: x\r\nOrigin: ${garden}\r\n\r\n`;
  connection.write(livez.repeat(3));
  for (let at = 0; at < 3; at++) {
    const answer = await connection.answer();
    assert.ok(answer?.headers.includes(`access-control-allow-origin: ${garden}`));
  }
  connection.socket.destroy();
});
