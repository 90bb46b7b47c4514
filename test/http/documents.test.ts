/**
 * What everybody can load without a token: /openapi.json, /docs with all that it needs, and /problems.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingHttpHeaders } from 'node:http';
import { it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { problemKinds } from '../../src/problem.ts';
import { startApp } from '../support/app.ts';
import { exchange, request as rawRequest } from '../support/raw.ts';
import { fileScope } from '../support/storages.ts';

const { address, call } = await startApp(fileScope());
const paths = ['/openapi.json', '/docs', '/web/styles/reference.css', '/web/reference.ts'];

interface Loaded {
  status: number | undefined;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** A request as it is written here; fetch would ask for compression and undo it. */
async function load(
  path: string,
  { method = 'GET', ...headers }: Record<string, string> = {},
): Promise<Loaded> {
  const sent = request(address + path, { method, headers }).end();
  const [response] = await once(sent, 'response');
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) };
}

/** The headers that an answer to one document always has. */
const lasting = ({ headers }: Loaded) =>
  ['etag', 'vary', 'cache-control', 'x-content-type-options'].map((name) => headers[name]);

for (const path of paths) {
  it(`sends ${path} plain and compressed, each with its own ETag and length`, async () => {
    const plain = await load(path);
    const zipped = await load(path, { 'accept-encoding': 'gzip' });
    assert.deepEqual(gunzipSync(zipped.body), plain.body);
    assert.deepEqual(
      [plain.headers['content-encoding'], zipped.headers['content-encoding']],
      [undefined, 'gzip'],
    );
    assert.notEqual(plain.headers.etag, zipped.headers.etag);
    for (const encoding of ['identity', 'gzip']) {
      const headers = { 'accept-encoding': encoding };
      const got = await load(path, headers);
      assert.equal(got.status, 200);
      assert.match(got.headers.etag ?? '', /^"[\w-]{43}"$/);
      assert.equal(got.headers.vary, 'Accept-Encoding');
      assert.match(got.headers['cache-control'] ?? '', /^(no-cache|public, max-age=3600)$/);
      assert.equal(got.headers['x-content-type-options'], 'nosniff');
      assert.equal(got.headers['content-length'], String(got.body.length));

      const head = await load(path, { ...headers, method: 'HEAD' });
      const { date, 'x-request-id': id, ...its } = got.headers;
      assert.deepEqual({ date, 'x-request-id': id, ...head.headers, ...its }, head.headers);
      assert.equal(head.body.length, 0);

      for (const method of ['GET', 'HEAD']) {
        const known = { ...headers, 'if-none-match': got.headers.etag ?? '', method };
        const unchanged = await load(path, known);
        assert.deepEqual([unchanged.status, unchanged.body.length], [304, 0]);
        assert.deepEqual(lasting(unchanged), lasting(got));
        for (const name of ['content-length', 'content-type', 'content-encoding']) {
          assert.equal(unchanged.headers[name], undefined, name);
        }
      }
    }
  });
}

it('compresses if the client names gzip (RFC 9110, section 12.5.3)', async () => {
  for (const [encoding, texts] of [
    ['gzip', 'gzip|GZIP|x-gzip|br, gzip|gzip;q=0.001|gzip;q=0.4, identity;q=0.5'],
    ['gzip', 'deflate , gzip ; q=1.000|identity;q=0, gzip|,gzip,'],
    [undefined, '|br|identity|gzip;q=0|gzip;q=0.000, *|*;q=0|*'],
    [undefined, 'gzip;q=2|gzip;q=-1|gzip;q=|gzip;q|gzip;level=9|notgzip|gzip gzip'],
  ] as const) {
    for (const text of texts.split('|')) {
      const { headers } = await load('/docs', { 'accept-encoding': text });
      assert.equal(headers['content-encoding'], encoding, text);
    }
  }
});

it('returns 304 if the client has the document (RFC 9110, section 13.1.2)', async () => {
  const { etag = '' } = (await load('/docs')).headers;
  const { etag: zipped = '' } = (await load('/docs', { 'accept-encoding': 'gzip' })).headers;
  const bare = etag.slice(1, -1);
  const statuses: Record<number, string[]> = {
    304: [etag, `W/${etag}`, '*', ` * `, `"a", ${etag}`, `"a,b",W/"c" , W/${etag},"d"`],
    200: ['', '"a"', bare, `"${bare}`, `"${bare.toLowerCase()}"`, zipped, `"*"`, `"W/${bare}"`],
  };
  for (const [status, texts] of Object.entries(statuses)) {
    for (const text of texts) {
      const answer = await load('/docs', { 'if-none-match': text });
      assert.equal(answer.status, Number(status), text);
    }
  }
});

it('the type of a problem leads to its place in the reference', async () => {
  const { text } = await call('GET', '/docs');
  const kinds = Object.keys(problemKinds);
  for (const path of ['/problems', ...kinds.map((kind) => `/problems/${kind}`)]) {
    const { status, headers } = await fetch(address + path, { redirect: 'manual' });
    assert.equal(status, 302, path);
    const head = await fetch(address + path, { method: 'HEAD', redirect: 'manual' });
    for (const name of ['location', 'content-length', 'cache-control'])
      assert.equal(head.headers.get(name), headers.get(name), name);
    const location = headers.get('location') ?? '';
    assert.match(location, /^[^/]/, 'a path prefix is kept');
    const { pathname, hash } = new URL(location, address + path);
    assert.deepEqual([pathname, hash], ['/docs', `#${path.split('/').at(-1)}`]);
    assert.ok(text.includes(`id="${hash.slice(1)}"`), path);
  }
});

it('an unknown path is a problem, also for a browser', async () => {
  const headers = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
  const answer = await call('GET', '/nowhere', { headers });
  assert.equal(answer.headers.get('content-type'), 'application/problem+json');
  assert.partialDeepStrictEqual(answer.json, { type: '/problems/path-not-found' });
});

it('an unknown kind is a problem itself', async () => {
  for (const path of ['nothing', 'id-taken.html', 'index', 'constructor', 'ID-TAKEN', '']) {
    const { status, json } = await call('GET', `/problems/${path}`);
    assert.equal(status, 404, path);
    assert.partialDeepStrictEqual(json, { type: '/problems/path-not-found' });
  }
  const refused = await call('POST', '/problems/id-taken');
  assert.equal(refused.headers.get('allow'), 'GET, HEAD, OPTIONS');
});

it('a connection of the service that breaks is no error of the client', async (t) => {
  const broken = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  const app = await startApp(t, {
    addRoutes: (instance) => instance.get('/broken', () => Promise.reject(broken)),
  });
  const { status, json } = await app.call('GET', '/broken');
  assert.equal(status, 500);
  assert.partialDeepStrictEqual(json, { type: '/problems/internal-error' });
});

it('the type has the path prefix of the base URL, whoever finds the problem', async (t) => {
  for (const prefix of ['/nursery/north', '']) {
    const { port } = await startApp(t, { baseUrl: `https://plants.example${prefix}` });
    for (const [kind, bytes] of [
      ['invalid-token', rawRequest('GET /plants', ['Host: x'])],
      ['invalid-request', 'hello\r\n\r\n'],
      ['invalid-request', rawRequest('GET /%zz', ['Host: x'])],
      ['method-not-allowed', rawRequest('CONNECT x:80', ['Host: x:80'])],
      ['method-not-allowed', rawRequest('PUT /', ['Host: x'])],
      ['path-not-found', rawRequest('GET /nowhere', ['Host: x'])],
    ] as const) {
      const answer = await exchange(port, bytes);
      assert.ok(answer.includes(`{"type":"${prefix}/problems/${kind}",`), answer);
    }
  }
});
