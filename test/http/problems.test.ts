import assert from 'node:assert/strict';
import { it } from 'node:test';
import { problemResponses } from '../../src/http/response/problems.ts';
import { startApp } from '../support/app.ts';
import { exchange, request } from '../support/raw.ts';

const kinds = Object.keys(problemResponses);

it('the type of a problem leads to its place in the reference', async (t) => {
  const { call, address } = await startApp(t);
  const { text } = await call('GET', '/docs');
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

it('an unknown path is a page for a browser, and a problem for everybody else', async (t) => {
  const { call, address } = await startApp(t, { baseUrl: 'https://plants.example/api' });
  const browsers = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const pages = { GET: browsers, HEAD: 'text/html' };
  for (const [method, accept] of Object.entries(pages)) {
    const answer = await call(method, '/nowhere', { headers: { accept } });
    assert.equal(answer.status, 404);
    const { headers } = answer;
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.match(headers.get('content-security-policy') ?? '', /^default-src 'none'; /);
    assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
    if (method === 'HEAD') continue;
    const links = [...answer.text.matchAll(/\shref="([^"]+)"/g)].map(([, link = '']) => link);
    assert.ok(links.includes('/api/') && links.includes('/api/docs'), String(links));
    for (const link of links) {
      const path = link.replace(/^\/api/, '');
      assert.equal((await call('GET', path)).status, 200, link);
    }
  }
  const problems = ['*/*', 'application/json', 'text/html;q=0', 'text/html;q=0.5, */*', browsers];
  for (const accept of [...problems, 'application/problem+json, text/html']) {
    const method = accept === browsers ? 'POST' : 'GET';
    const answer = await call(method, '/nowhere', { headers: { accept } });
    assert.equal(answer.headers.get('content-type'), 'application/problem+json', accept);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.partialDeepStrictEqual(answer.json, { type: '/api/problems/path-not-found' });
  }
  const file = await fetch(`${address}/web/nothing.js`, { headers: { accept: '*/*' } });
  assert.equal(file.headers.get('content-type'), 'application/problem+json');
});

it('an unknown kind is a problem itself', async (t) => {
  const { call } = await startApp(t);
  for (const path of ['nothing', 'id-taken.html', 'index', 'constructor', 'ID-TAKEN', '']) {
    const { status, json } = await call('GET', `/problems/${path}`);
    assert.equal(status, 404, path);
    assert.partialDeepStrictEqual(json, { type: '/problems/path-not-found' });
  }
  assert.equal(
    (await call('POST', '/problems/id-taken')).headers.get('allow'),
    'GET, HEAD, OPTIONS',
  );
});

it('a connection of the service that breaks is no error of the client', async (t) => {
  const { call } = await startApp(t, {
    addRoutes: (app) =>
      app.get('/broken', () => {
        throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
      }),
  });
  const { status, json } = await call('GET', '/broken');
  assert.equal(status, 500);
  assert.partialDeepStrictEqual(json, { type: '/problems/internal-error' });
});

it('the type has the path prefix of the base URL, whoever finds the problem', async (t) => {
  const bases = {
    'https://plants.example/nursery/north': '/nursery/north',
    'https://plants.example': '',
  };
  for (const [baseUrl, prefix] of Object.entries(bases)) {
    const { call, port } = await startApp(t, { baseUrl });
    const { json } = await call('GET', '/plants');
    assert.partialDeepStrictEqual(json, { type: `${prefix}/problems/invalid-token` });
    const requests = {
      'invalid-request': ['hello\r\n\r\n', request('GET /%zz', ['Host: x'])],
      'method-not-allowed': [
        request('CONNECT x:80', ['Host: x:80']),
        request('PUT /', ['Host: x']),
      ],
      'path-not-found': [request('GET /nowhere', ['Host: x'])],
    };
    for (const [kind, all] of Object.entries(requests)) {
      for (const bytes of all) {
        const answer = await exchange(port, bytes);
        assert.ok(answer.includes(`{"type":"${prefix}/problems/${kind}",`), answer);
      }
    }
  }
});
