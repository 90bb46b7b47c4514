import assert from 'node:assert/strict';
import { test } from 'node:test';
import { violations } from '../support/accessibility.ts';
import { startApp } from '../support/app.ts';
import { launchBrowser, openPage, withoutBrowser } from '../support/browser.ts';

const paths = ['/problems', '/problems/invalid-request', '/problems/overloaded'];

test(
  'the pages about problems suit light and dark, wide and narrow',
  { skip: withoutBrowser },
  async (t) => {
    const { address } = await startApp(t);
    const browser = await launchBrowser(t);
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const width of [360, 1_280]) {
        for (const path of paths) {
          const viewport = { width, height: 800 };
          const { page, errors } = await openPage(browser, address + path, {
            colorScheme,
            viewport,
          });
          const where = `${path}, ${colorScheme}, ${width} px`;
          assert.deepEqual(await violations(page), [], where);
          assert.deepEqual(errors, [], where);
          assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width, where);
          const folder = process.env['PLANT_STORE_TEST_SCREENSHOTS'];
          if (folder)
            await page.screenshot({
              path: `${folder}/${path.replaceAll('/', '_')}-${colorScheme}-${width}.png`,
              fullPage: true,
            });
          await page.close();
        }
      }
    }
  },
);

test(
  'the type of a response leads to its page, and from there to all problems',
  { skip: withoutBrowser },
  async (t) => {
    const { address, call } = await startApp(t);
    const { json } = await call('GET', '/plants');
    const { type, title } = json as { type: string; title: string }; // a problem
    const { page } = await openPage(await launchBrowser(t), new URL(type, address).href);
    assert.equal(await page.getByRole('heading', { level: 1 }).textContent(), title);
    await page.getByRole('link', { name: 'All problems' }).click();
    await page.getByRole('link', { name: /The id is already taken/ }).click();
    await page.waitForURL(`${address}/problems/id-taken`);
  },
);
