/**
 * The states of the page, and the reference, with each rule of axe in every look.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { assertAccessible, everyLook } from '../support/accessibility.ts';
import { startApp } from '../support/app.ts';
import { openPage, withoutBrowser } from '../support/browser.ts';
import { testStates } from './states.ts';
import { browserOfFile } from './store.ts';

testStates(everyLook);

const browser = browserOfFile();

it('the reference is accessible in every look', { skip: withoutBrowser }, async (t) => {
  const { address } = await startApp(t);
  const { page, errors } = await openPage(browser(), `${address}/docs`);
  t.after(() => page.context().close());
  await assertAccessible(page, 'folded', everyLook);
  await page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))");
  await assertAccessible(page, 'unfolded', everyLook);
  assert.deepEqual(errors, []);
});
