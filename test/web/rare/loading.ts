/**
 * What the page loads.
 */
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import type { Page, Request } from 'playwright-core';
import { startApp } from '../../support/app.ts';
import { openPage } from '../../support/browser.ts';
import { until } from '../../support/until.ts';
import { browser, inBrowser } from '../store.ts';

const isFile = (request: Request) => /\/(?:web|client)\/[\w/-]+\.\w+$/.test(request.url());

async function openSignIn(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await page.getByRole('heading', { name: 'Open your store' }).waitFor();
}

inBrowser(
  'a first visit asks for all its files at once, of at most 110 KB, and a second one for none again',
  async (t) => {
    const { address } = await startApp(t);
    const context = await (await browser()).newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    const files = new Set<string>();
    const bodies: Promise<number>[] = [];
    page.on('request', (request) => isFile(request) && files.add(request.url()));
    page.on('response', (response) => {
      bodies.push(response.body().then((body) => gzipSync(body).length));
    });
    await openSignIn(page, address);
    assert.ok(files.size > 30);
    const sizes = await Promise.all(bodies);
    const bytes = sizes.reduce((sum, size) => sum + size);
    t.diagnostic(`${sizes.length} files, ${bytes} bytes`);
    assert.ok(bytes < 110_000, `${bytes} bytes, compressed`);

    const again = await context.newPage();
    const network = await context.newCDPSession(again);
    await network.send('Network.enable');
    const cached = new Set<string>();
    const loaded = new Map<string, string>();
    network.on('Network.requestServedFromCache', ({ requestId }) => cached.add(requestId));
    network.on('Network.responseReceived', ({ requestId, response }) => {
      if (response.fromDiskCache === true) cached.add(requestId);
      loaded.set(requestId, response.url);
    });
    await openSignIn(again, address);
    assert.ok(loaded.size > 30);
    const asked = [...loaded].filter(([id]) => !cached.has(id)).map(([, url]) => url);
    assert.deepEqual(
      asked.filter((url) => !url.startsWith('data:')),
      [`${address}/`],
    );

    const other = await (await (await browser()).newContext()).newPage();
    t.after(() => other.context().close());
    const held = new Set<string>();
    const release = Promise.withResolvers<void>();
    await other.route('**/*', async (route) => {
      if (isFile(route.request())) {
        held.add(route.request().url());
        await release.promise;
      }
      await route.continue();
    });
    const opened = openSignIn(other, address);
    await until('all are asked for before the first one is there', () => held.size === files.size);
    release.resolve();
    await opened;
  },
);

inBrowser('a phone can put the page on its home screen, below any path', async (t) => {
  const { address } = await startApp(t);
  const { page, errors } = await openPage(await browser(), address);
  t.after(() => page.context().close());
  // As behind a proxy that adds a path.
  await page.route(`${address}/nursery/**`, async (route) => {
    const response = await route.fetch({ url: route.request().url().replace('/nursery/', '/') });
    await route.fulfill({ response });
  });
  await openSignIn(page, `${address}/nursery/`);
  const devtools = await page.context().newCDPSession(page);
  const manifest = await devtools.send('Page.getAppManifest');
  assert.deepEqual(manifest.errors, []);
  const { start_url: start, icons } = JSON.parse(manifest.data ?? '');
  assert.equal(new URL(start, manifest.url).href, `${address}/nursery/`);
  for (const { src, sizes } of icons) {
    const image = `new Promise((loaded) => {
      const image = Object.assign(new Image(), { src: '${new URL(src, manifest.url).href}' });
      image.onload = () => loaded(image.naturalWidth + 'x' + image.naturalHeight);
      image.onerror = () => loaded('no image');
    })`;
    assert.equal(await page.evaluate(image), sizes);
  }
  assert.deepEqual(errors, []);
});
