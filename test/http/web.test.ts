import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { it } from 'node:test';
import { startApp, type Answer } from '../support/app.ts';
import { fileScope } from '../support/storages.ts';

const { address, call } = await startApp(fileScope(), {
  baseUrl: 'https://plants.example/nursery',
});
/** From the start: Node warns once of what removes types. */
const warnings: string[] = [];
process.on('warning', ({ message }) => warnings.push(message));
const source = new URL('../../src/', import.meta.url);
const paths = ['web', 'client'].flatMap((folder) =>
  readdirSync(new URL(`${folder}/`, source), { recursive: true })
    .filter((name): name is string => typeof name === 'string' && /\.(css|ts)$/.test(name))
    .map((name) => `/${folder}/${name}`),
);

function assertIsolated({ headers }: Answer, path: string): void {
  assert.equal(
    headers.get('content-security-policy'),
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
      "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; " +
      "frame-ancestors 'none'; require-trusted-types-for 'script'",
    path,
  );
  assert.equal(headers.get('referrer-policy'), 'no-referrer', path);
  assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin', path);
  assert.equal(headers.get('x-content-type-options'), 'nosniff', path);
}

it('serves the page at / under a strict policy, with relative URLs of its own files', async () => {
  const page = await call('GET', '/');
  assert.equal(page.status, 200);
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assertIsolated(page, '/');
  const urls = [...page.text.matchAll(/\s(?:src|href)="([^"#]+)"/g)].map(([, url = '']) => url);
  const files = urls.filter((url) => !url.startsWith('data:'));
  assert.ok(files.length > 0);
  for (const file of files) {
    assert.match(file, /^[^/:]/, 'a path prefix is kept');
    const { pathname } = new URL(file, `${address}/`);
    assert.equal((await call('GET', pathname)).status, 200, file);
  }
});

it('serves every module and style of the page and the client, without a warning', async () => {
  const mediaTypes: Record<string, string> = {
    css: 'text/css; charset=utf-8',
    ts: 'text/javascript; charset=utf-8',
  };
  assert.ok(paths.some((path) => path.endsWith('.ts')));
  for (const path of paths) {
    const [, extension = ''] = path.split('.');
    const answer = await call('GET', path);
    assert.equal(answer.status, 200, path);
    assert.equal(answer.headers.get('content-type'), mediaTypes[extension], path);
    assertIsolated(answer, path);
    assert.equal((await call('HEAD', path)).status, 200, path);
  }
  assert.doesNotMatch(warnings.join(), /stripTypeScriptTypes/);
});

it('serves nothing else', async () => {
  const ofWeb =
    '/web /web/ /web/index.html /web/nothing.ts /web/problems /web/tsconfig.json /web/styles/theme.css/ /web/styles ' +
    '/web/styles/THEME.CSS /web/styles/nothing.css /web/..%2fhttp%2fapp.ts /web/%2e%2e%2fplant.ts';
  const others = '/client/../plant.ts /client/ /client/styles/theme.css /http/app.ts';
  for (const path of `${ofWeb} ${others}`.split(' ')) {
    const { status, json } = await call('GET', path);
    assert.equal(status, 404, path);
    assert.partialDeepStrictEqual(json, { title: 'Path not found' });
  }
});

it('files last only at the address of their own version', async () => {
  const { text } = await call('GET', '/');
  const [path = ''] = /assets\/[^"]+\/web\/main\.ts/.exec(text) ?? [];
  const cacheControlOf = async (target: string) => {
    const { status, headers } = await call('GET', target);
    return [status, headers.get('cache-control')];
  };
  assert.deepEqual(await cacheControlOf(`/${path}`), [200, 'public, max-age=31536000, immutable']);
  // Another replica can have another version during an upgrade.
  assert.deepEqual(await cacheControlOf('/assets/other/web/main.ts'), [200, 'no-cache']);
  assert.deepEqual(await cacheControlOf('/web/main.ts'), [200, 'no-cache']);
  const missing = path.replace('main', 'missing');
  assert.deepEqual(await cacheControlOf(`/${missing}`), [404, 'no-store']);
});

it('the page can connect to the provider, and only the page', async (t) => {
  const app = await startApp(t, {
    signOn: { issuer: 'https://login.example/garden', clientId: '"><b>&', scope: 'openid' },
  });
  const policyOf = async (path: string) =>
    (await app.call('GET', path)).headers.get('content-security-policy') ?? '';
  assert.match(await policyOf('/'), /connect-src 'self' https:\/\/login\.example;/);
  for (const path of ['/docs', '/web/main.ts']) {
    assert.match(await policyOf(path), /connect-src 'self';/);
  }
  const { text } = await app.call('GET', '/');
  assert.ok(
    text.includes('&quot;clientId&quot;:&quot;\\&quot;><b>&amp;&quot;'),
    text.slice(0, 2_000),
  );
});
