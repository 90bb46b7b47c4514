/**
 * The states of the page, the reference and the pages about problems, with each rule of axe in every look.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { assertAccessible, everyLook } from '../support/accessibility.ts';
import { startApp } from '../support/app.ts';
import { openPage, withoutBrowser } from '../support/browser.ts';
import { problemPaths } from './problem-paths.ts';
import { testStates } from './states.ts';
import { browserOfFile } from './store.ts';

testStates(everyLook);

const browser = browserOfFile();

for (const path of ['/docs', ...problemPaths]) {
  it(`${path} is accessible in every look`, { skip: withoutBrowser }, async (t) => {
    const { address } = await startApp(t);
    const { page, errors } = await openPage(browser(), address + path);
    t.after(() => page.context().close());
    await assertAccessible(page, 'folded', everyLook);
    await page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))");
    await assertAccessible(page, 'unfolded', everyLook);
    assert.deepEqual(errors, []);
  });
}
