/**
 * A page of another origin in a browser: what it can send and read, with CORS and without.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { startApp, type TestApp } from '../../support/app.ts';
import { openPage } from '../../support/browser.ts';
import { browser, inBrowser } from '../store.ts';

/** Opens an empty page of another origin. */
async function openGarden(t: TestContext) {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>garden</title>');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on a port
  const { page, errors } = await openPage(await browser(), origin);
  t.after(() => page.context().close());
  return { page, errors, origin };
}

interface Sent {
  method?: string;
  token?: string;
  json?: unknown;
}

/** What a script of the page can read of a response; only `error` if the browser refuses. */
interface Readable {
  status?: number;
  headers?: Record<string, string>;
  text?: string;
  error?: string;
}

function sendFrom(page: Page, url: string, { method = 'GET', token, json }: Sent = {}) {
  const headers = {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(json !== undefined && { 'content-type': 'application/json' }),
  };
  const body = json === undefined ? null : JSON.stringify(json);
  return page.evaluate(
    async ([address, init]): Promise<Readable> => {
      try {
        const response = await fetch(address, init);
        const text = await response.text();
        return { status: response.status, headers: Object.fromEntries(response.headers), text };
      } catch (error) {
        return { error: String(error) };
      }
    },
    [url, { method, headers, body }] as const,
  );
}

const refused: Readable = { error: 'TypeError: Failed to fetch' };

async function assertCanUse(page: Page, { address, token, database }: TestApp): Promise<void> {
  const alice = await token('alice');
  const reader = await token('alice', { scopes: ['plants:read'] });
  const json = { name: 'Monstera', id: 7 };
  const requests: [target: string, sent: Sent, status: number, header?: [string, RegExp]][] = [
    ['/plants', { method: 'POST', token: alice, json }, 201, ['location', /^\/plants\/7$/]],
    ['/plants', { method: 'POST', token: alice, json }, 409, ['x-request-id', /^[0-9a-f-]{36}$/]],
    ['/plants', { method: 'POST', token: alice, json: { name: 'Aloe' } }, 201],
    [
      '/plants?limit=1',
      { token: alice },
      200,
      ['link', /^<\/plants\?limit=1&after=7>; rel="next"$/],
    ],
    ['/plants/7', { method: 'DELETE', token: reader }, 403, ['www-authenticate', /insufficient_/]],
    ['/plants', { token: `${alice}x` }, 401, ['www-authenticate', /invalid_token/]],
    ['/plants/7', { method: 'DELETE', token: alice }, 204],
    ['/plants/7', { token: alice }, 404],
    ['/nowhere', { method: 'DELETE', token: alice }, 404],
    ['/plants', { method: 'POST', token: alice, json: { name: 'a'.repeat(20_000) } }, 413],
  ];
  const assertReadable = async ([target, sent, status, header]: (typeof requests)[number]) => {
    const response = await sendFrom(page, address + target, sent);
    assert.equal(response.status, status, target);
    if (status >= 400) assert.match(response.text ?? '', /"type":"\/problems\//);
    if (header !== undefined) assert.match(response.headers?.[header[0]] ?? '', header[1]);
  };
  for (const request of requests) await assertReadable(request);
  await database.run('ALTER TABLE plants RENAME TO gone');
  await assertReadable(['/plants', { token: alice }, 503, ['retry-after', /^1$/]]);
}

inBrowser('pages of the allowed origins use the service, and read errors', async (t) => {
  const { page, origin } = await openGarden(t);
  for (const allowed of [origin, '*']) {
    await assertCanUse(page, await startApp(t, { corsOrigins: [allowed] }));
  }
});

inBrowser('pages of other origins read and change nothing', async (t) => {
  const { page, errors } = await openGarden(t);
  for (const corsOrigins of [['https://garden.example'], []]) {
    const { address, token } = await startApp(t, { corsOrigins });
    await assertRefused(page, address, await token('alice'));
  }
  assert.match(errors.join('\n'), /has been blocked by CORS policy/);
});

async function assertRefused(page: Page, address: string, token: string): Promise<void> {
  const json = { name: 'Monstera' };
  const created = await sendFrom(page, `${address}/plants`, { method: 'POST', token, json });
  assert.deepEqual(created, refused);
  assert.deepEqual(await sendFrom(page, `${address}/plants`, { token }), refused);
  assert.deepEqual(await sendFrom(page, `${address}/livez`), refused);
  const list = await fetch(`${address}/plants`, { headers: { authorization: `Bearer ${token}` } });
  assert.deepEqual(await list.json(), []);
}
