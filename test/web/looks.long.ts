/**
 * The states of the page, and the reference, with each rule of axe in every look; the places of menus and what it loads.
 */
import assert from 'node:assert/strict';
import type { Locator } from 'playwright-core';
import { assertAccessible, everyLook } from '../support/accessibility.ts';
import { startApp } from '../support/app.ts';
import { openPage } from '../support/browser.ts';
import { testStates } from './states.ts';
import { browser, inBrowser, openStore } from './store.ts';

testStates(everyLook);
await import('./rare/reference.ts');
await import('./rare/loading.ts');

inBrowser('the reference is accessible in every look', async (t) => {
  const { address } = await startApp(t);
  const { page, errors } = await openPage(await browser(), `${address}/docs`);
  t.after(() => page.context().close());
  await assertAccessible(page, 'folded', everyLook);
  await page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))");
  await assertAccessible(page, 'unfolded', everyLook);
  assert.deepEqual(errors, []);
});

async function boxOf(locator: Locator) {
  const box = await locator.boundingBox();
  assert.ok(box, 'it is visible');
  return { ...box, right: box.x + box.width, bottom: box.y + box.height };
}

inBrowser('each menu opens below its button, and inside a wide or narrow window', async (t) => {
  const { page } = await openStore(t);
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 740 });
    for (const menu of ['identity', 'export', 'more']) {
      const button = page.locator(`[popovertarget=${menu}]`);
      await button.click();
      const [place, menuPlace] = [await boxOf(button), await boxOf(page.locator(`#${menu}`))];
      const where = `${menu}: ${JSON.stringify({ place, menuPlace })}`;
      const gap = menuPlace.y - place.bottom;
      assert.ok(gap >= 0 && gap < 10, where);
      assert.ok(menuPlace.x < place.right && menuPlace.right > place.x, where);
      const isAligned = [menuPlace.x - place.x, menuPlace.right - place.right].some(
        (distance) => Math.abs(distance) < 1,
      );
      assert.ok(isAligned, where);
      assert.ok(menuPlace.x >= 0 && menuPlace.right <= width, where);
      await page.keyboard.press('Escape');
    }
  }
});
