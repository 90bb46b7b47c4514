/**
 * The reference at /docs in a real browser.
 */
import assert from 'node:assert/strict';
import { startApp } from '../../support/app.ts';
import { openPage } from '../../support/browser.ts';
import { browser, inBrowser } from '../store.ts';

inBrowser(
  'has an address for each operation, copies samples, and loads nothing from another origin',
  async (t) => {
    const { address } = await startApp(t);
    const permissions = ['clipboard-read', 'clipboard-write'];
    const { page, errors } = await openPage(await browser(), 'about:blank', {
      permissions,
      reducedMotion: 'reduce',
    });
    t.after(() => page.context().close());
    const requested: string[] = [];
    page.on('request', (sent) => requested.push(sent.url()));
    await page.goto(`${address}/docs#deletePlant`, { waitUntil: 'networkidle' });
    assert.ok(requested.length >= 4);
    for (const url of requested) {
      assert.ok(url.startsWith(address) || url.startsWith('data:'), url);
    }
    const { y = -1 } = (await page.locator('#deletePlant').boundingBox()) ?? {};
    assert.ok(y >= 0 && y < 200, `${y}`);
    await page.goto(`${address}/problems/id-taken`);
    await page.locator('#id-taken').getByText('Fix:').waitFor({ state: 'visible' });

    await page.locator('#getPlant').getByRole('button', { name: 'Copy' }).first().click();
    await page.getByRole('status').getByText('Copied').waitFor();
    const copied = String(await page.evaluate('navigator.clipboard.readText()'));
    assert.match(copied, /^curl '/);
    assert.ok(copied.includes(`${address}/plants/42`), copied);
    assert.deepEqual(errors, []);

    // A shop has no HTTPS on its own network.
    await page.goto(`${address.replace('127.0.0.1', 'shop.example')}/docs`);
    await page.getByRole('button', { name: 'Copy' }).first().click();
    await page.getByRole('status').getByText('Copied').waitFor();
  },
);
