/**
 * The reference at /docs in a real browser: wide and narrow, light and dark, by keyboard, and without its script.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it, type TestContext } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { startApp } from '../support/app.ts';
import { assertAccessible } from '../support/accessibility.ts';
import { openPage, withoutBrowser } from '../support/browser.ts';
import { browserOfFile } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

async function openReference(t: TestContext, options: BrowserContextOptions = {}, path = '/docs') {
  const app = await startApp(t);
  const opened = await openPage(browser(), app.address + path, options);
  t.after(() => opened.page.context().close());
  return { app, ...opened };
}

const unfold = "document.querySelectorAll('details').forEach((one) => (one.open = true))";

/** How far the page can be scrolled sideways, in pixels. */
async function overflow(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - innerWidth');
}

it('is accessible and fits 1280 and 360 px, light and dark', { skip }, async (t) => {
  const { page, errors } = await openReference(t);
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 844 });
    for (const language of ['JavaScript', 'Python', 'curl']) {
      await page.getByRole('radio', { name: language }).first().check();
      assert.ok((await overflow(page)) <= 0, `${language}, ${width} px`);
    }
    const heights = await page
      .locator('section.operation')
      .evaluateAll((sections) => sections.map((section) => section.getBoundingClientRect().height));
    assert.ok(heights.length > 5 && Math.max(...heights) < 2000, String(heights));
  }
  assert.equal(await page.locator('details[open]').count(), 0, 'problems are folded');
  await page.evaluate(unfold);
  await assertAccessible(page, 'unfolded');
  assert.deepEqual(errors, []);
});

it('fits 320 px', { skip }, async (t) => {
  const { page } = await openReference(t, { viewport: { width: 320, height: 640 } });
  await page.evaluate(unfold);
  assert.ok((await overflow(page)) <= 0);
});

it('loads nothing from another origin', { skip }, async (t) => {
  const app = await startApp(t);
  const context = await browser().newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  const requested: string[] = [];
  page.on('request', (sent) => requested.push(sent.url()));
  await page.goto(`${app.address}/docs`, { waitUntil: 'networkidle' });
  assert.ok(requested.length >= 4);
  for (const url of requested)
    assert.ok(url.startsWith(app.address) || url.startsWith('data:'), url);
});

it('shows the chosen language everywhere, also at the next visit', { skip }, async (t) => {
  const { page } = await openReference(t);
  const shown = () =>
    page
      .locator('.sample:visible')
      .evaluateAll((samples) => [
        ...new Set(samples.map((sample) => sample.getAttribute('data-language'))),
      ]);
  assert.deepEqual(await shown(), ['curl']);
  await page.locator('#listPlants').getByRole('radio', { name: 'Python' }).check();
  assert.deepEqual(await shown(), ['Python']);
  await page.reload();
  assert.deepEqual(await shown(), ['Python']);
});

it('copies a sample with the address of the page', { skip }, async (t) => {
  const permissions = ['clipboard-read', 'clipboard-write'];
  const { page, app } = await openReference(t, { permissions });
  await page.locator('#getPlant').getByRole('button', { name: 'Copy' }).first().click();
  await page.getByRole('status').getByText('Copied').waitFor();
  const copied = String(await page.evaluate('navigator.clipboard.readText()'));
  assert.match(copied, /^curl '/);
  assert.ok(copied.includes(`${app.address}/plants/42`), copied);
});

it('can be used by keyboard alone', { skip }, async (t) => {
  const { page } = await openReference(t);
  await page.keyboard.press('Tab');
  assert.equal((await focusOf(page)).text, 'Skip to the content');
  await page.keyboard.press('Enter');
  const reached = new Set<string>();
  for (let presses = 0; presses < 200 && !reached.has('problems'); presses++) {
    await page.keyboard.press('Tab');
    const { section, control, isVisible } = await focusOf(page);
    assert.ok(isVisible, `${section} ${control} has no visible focus`);
    reached.add(section);
    if (section === 'createPlant' && control === 'INPUT') {
      await page.keyboard.press('ArrowRight');
      assert.equal(await page.evaluate('document.documentElement.dataset.language'), 'JavaScript');
    }
    if (section === 'createPlant' && control === 'SUMMARY') {
      await page.keyboard.press('Enter');
      assert.ok(await page.evaluate('document.activeElement.parentElement.open'));
    }
  }
  for (const section of ['token', 'createPlant', 'paging', 'problems']) {
    assert.ok(reached.has(section), `${section} was not reached`);
  }
});

interface Focus {
  /** The id of its section. */
  section: string;
  /** The name of its element. */
  control: string;
  text: string;
  /** Whether it has an outline. */
  isVisible: boolean;
}

async function focusOf(page: Page): Promise<Focus> {
  return page.evaluate(`(() => {
    const element = document.activeElement;
    return {
      section: element.closest('section[id]')?.id ?? '',
      control: element.tagName,
      text: element.textContent.trim(),
      isVisible: getComputedStyle(element.closest('label') ?? element).outlineStyle !== 'none',
    };
  })()`);
}

it('has an address for each operation and each problem', { skip }, async (t) => {
  const { page, app } = await openReference(t, { reducedMotion: 'reduce' }, '/docs#deletePlant');
  await page.locator('#deletePlant-title').waitFor();
  const { y = -1 } = (await page.locator('#deletePlant').boundingBox()) ?? {};
  assert.ok(y >= 0 && y < 200, `${y}`);
  await page.goto(`${app.address}/docs#id-taken`);
  await page.locator('#id-taken').getByText('Fix:').waitFor({ state: 'visible' });
});

it('works without its script', { skip }, async (t) => {
  const { page } = await openReference(t, { javaScriptEnabled: false });
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
