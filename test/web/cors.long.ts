/**
 * A page of another origin in a browser: what it can send and read, with CORS and without.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { startApp, type TestApp } from '../support/app.ts';
import { launchBrowser, openPage, withoutBrowser } from '../support/browser.ts';

/** Serves an empty page, and returns its origin. */
async function originOfPage(t: Pick<TestContext, 'after'>): Promise<string> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>garden</title>');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on a port
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
  const send = (target: string, sent?: Sent) => sendFrom(page, address + target, sent);

  const json = { name: 'Monstera', id: 7 };
  const created = await send('/plants', { method: 'POST', token: alice, json });
  assert.equal(created.status, 201);
  assert.equal(created.headers?.['location'], '/plants/7');
  assert.match(created.headers?.['x-request-id'] ?? '', /^[0-9a-f-]{36}$/);
  const again = await send('/plants', { method: 'POST', token: alice, json });
  assert.deepEqual([again.status, /id-taken/.test(again.text ?? '')], [409, true]);
  await send('/plants', { method: 'POST', token: alice, json: { name: 'Aloe' } });

  const list = await send('/plants?fields=id&limit=1', { token: alice });
  assert.equal(list.text, '[{"id":7}]');
  assert.match(list.headers?.['link'] ?? '', /^<\/plants\?limit=1&after=7&.*rel="next"$/);

  const forbidden = await send('/plants/7', { method: 'DELETE', token: reader });
  assert.equal(forbidden.status, 403);
  assert.match(forbidden.headers?.['www-authenticate'] ?? '', /insufficient_scope/);
  const unauthorized = await send('/plants', { token: `${alice}x` });
  assert.equal(unauthorized.status, 401);
  assert.equal(unauthorized.headers?.['www-authenticate'], 'Bearer error="invalid_token"');
  assert.match(unauthorized.text ?? '', /invalid-token/);

  assert.equal((await send('/plants/7', { method: 'DELETE', token: alice })).status, 204);
  const gone = await send('/plants/7', { token: alice });
  assert.deepEqual([gone.status, /plant-not-found/.test(gone.text ?? '')], [404, true]);
  const nowhere = await send('/nowhere', { method: 'DELETE', token: alice });
  assert.deepEqual([nowhere.status, /path-not-found/.test(nowhere.text ?? '')], [404, true]);

  const large = { name: 'a'.repeat(20_000) };
  const tooLarge = await send('/plants', { method: 'POST', token: alice, json: large });
  assert.equal(tooLarge.status, 413);

  const other = new DatabaseSync(database.url.slice('sqlite:'.length));
  other.exec('ALTER TABLE plants RENAME TO gone');
  other.close();
  const unavailable = await send('/plants', { token: alice });
  assert.deepEqual([unavailable.status, unavailable.headers?.['retry-after']], [503, '1']);
}

test('pages of other origins', { skip: withoutBrowser }, async (t) => {
  const origin = await originOfPage(t);
  const { page, errors } = await openPage(await launchBrowser(t), origin);

  await t.test('a page of the named origin uses the service, and reads errors', async (tt) => {
    await assertCanUse(page, await startApp(tt, { corsOrigins: [origin] }));
  });

  await t.test('a page of any origin does with *', async (tt) => {
    await assertCanUse(page, await startApp(tt, { corsOrigins: ['*'] }));
  });

  await t.test('a page of another origin reads and changes nothing', async (tt) => {
    const { address, token } = await startApp(tt, { corsOrigins: ['https://garden.example'] });
    errors.length = 0;
    await assertRefused(page, address, await token('alice'));
    assert.match(errors.join('\n'), /has been blocked by CORS policy/);
  });

  await t.test('nor does any page without the setting', async (tt) => {
    const { address, token } = await startApp(tt);
    await assertRefused(page, address, await token('alice'));
  });
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
