/**
 * The reference at /docs in a real browser, without its script, and below a path.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { startApp } from '../support/app.ts';
import { openPage, withoutBrowser } from '../support/browser.ts';
import { browserOfFile } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

it('works without its script', { skip }, async (t) => {
  const { address } = await startApp(t);
  const { page } = await openPage(browser(), `${address}/docs`, { javaScriptEnabled: false });
  t.after(() => page.context().close());
  const samples = page.locator('#createPlant .sample');
  assert.equal(await samples.filter({ visible: true }).count(), 3);
  assert.equal(await page.getByRole('button').count(), 0);
  await page.locator('#createPlant').getByText('Problems').click();
  await page.locator('#createPlant').getByRole('link', { name: 'id-taken' }).waitFor();
});

it('works under a path prefix', { skip }, async (t) => {
  const app = await startApp(t);
  const proxy = createServer((incoming, outgoing) => {
    const path = (incoming.url ?? '').replace(/^\/nursery\//, '/');
    const forwarded = request({ port: app.port, path, headers: incoming.headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 0, response.headers);
      response.pipe(outgoing);
    });
    forwarded.end();
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => proxy.close());
  const { port } = proxy.address() as AddressInfo; // it listens on a port
  const prefix = `http://127.0.0.1:${port}/nursery`;
  const { page, errors } = await openPage(browser(), `${prefix}/docs`);
  t.after(() => page.context().close());
  const sample = await page.locator('#livez .sample').first().textContent();
  assert.ok(sample?.includes(`${prefix}/livez`), sample ?? '');
  const link = await page
    .getByRole('link', { name: 'Plant Store' })
    .evaluate((element) => String(element));
  assert.equal(link, `${prefix}/`);
  assert.deepEqual(errors, []);
});
