import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Locator } from 'playwright-core';
import { withoutBrowser } from '../support/browser.ts';
import { browserOfFile, openStore } from './store.ts';

const browser = browserOfFile();

async function boxOf(locator: Locator) {
  const box = await locator.boundingBox();
  assert.ok(box, 'it is visible');
  return { ...box, right: box.x + box.width, bottom: box.y + box.height };
}

it(
  'each menu opens below its button, and inside a wide or narrow window',
  { skip: withoutBrowser },
  async (t) => {
    const { page } = await openStore(t, browser());
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
  },
);
