import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertAccessible } from '../support/accessibility.ts';
import { startApp } from '../support/app.ts';
import { openPage, withoutBrowser } from '../support/browser.ts';
import { problemPaths } from './problem-paths.ts';
import { browserOfFile } from './store.ts';

const browser = browserOfFile();

test(
  'the pages about problems suit light and dark, wide and narrow',
  { skip: withoutBrowser },
  async (t) => {
    const { address } = await startApp(t);
    for (const path of problemPaths) {
      const { page, errors } = await openPage(browser(), address + path);
      await assertAccessible(page, path);
      assert.deepEqual(errors, [], path);
      await page.context().close();
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
    const { page } = await openPage(browser(), new URL(type, address).href);
    t.after(() => page.context().close());
    assert.equal(await page.getByRole('heading', { level: 1 }).textContent(), title);
    await page.getByRole('link', { name: 'All problems' }).click();
    await page.getByRole('link', { name: /The id is already taken/ }).click();
    await page.waitForURL(`${address}/problems/id-taken`);
  },
);
