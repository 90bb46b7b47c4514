/**
 * The states of the page, and the reference, with each rule of axe in every look; the places of menus and what it loads.
 */
import assert from 'node:assert/strict';
import type { Locator } from 'playwright-core';
import { scopes } from '../../src/access/access.ts';
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
  const { page } = await openStore(t, { access: { scopes } });
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 667 });
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
      const cut = `(({ scrollHeight: all, clientHeight: shown }) => all - shown)(window['${menu}'])`;
      assert.equal(await page.evaluate(cut), 0, `${menu} need not scroll`);
      await page.keyboard.press('Escape');
    }
  }
});

inBrowser('on a phone, messages do not cover what is edited or asked', async (t) => {
  const { page } = await openStore(t);
  await page.setViewportSize({ width: 360, height: 300 });
  const undo = page.getByRole('button', { name: 'Undo' });
  for (const name of ['Monstera', 'Thymus', 'Aloe']) {
    await page.getByRole('checkbox', { name: `Select ${name}` }).check();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.locator('.toast').getByText(name).waitFor();
    assert.equal(await undo.count(), 1, 'the latest');
  }
  await page.getByRole('button', { name: 'Edit Ficus' }).click();
  const message = await boxOf(page.locator('.toast:visible'));
  for (const part of ['#edit-name', '#edit-save']) {
    assert.ok(message.bottom <= (await boxOf(page.locator(part))).y, part);
  }
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Add plant' }).click();
  assert.ok((await boxOf(undo)).bottom <= (await boxOf(page.locator('#add-submit'))).y);
});

inBrowser('nothing moves, and nothing needs a guess', async (t) => {
  const { page } = await openStore(t, { context: { hasTouch: true, isMobile: true } });
  await page.setViewportSize({ width: 360, height: 740 });
  await page.getByRole('checkbox', { name: 'Select Ficus' }).tap();
  const nameless = `[...document.querySelectorAll('button')].filter((each) => {
    const isBare = each.checkVisibility() && each.innerText.trim().length < 2;
    const texts = [...each.querySelectorAll('span')].filter((span) => span.offsetWidth > 1);
    return isBare && texts.length === 0 && each.title === '';
  }).map((each) => each.outerHTML)`;
  assert.deepEqual(await page.evaluate(nameless), [], 'a bare icon has a title');
  await page.getByRole('button', { name: 'Clear' }).tap();
  assert.deepEqual(await page.evaluate(nameless), []);
  // Phones zoom in on smaller text.
  const small = `[...document.querySelectorAll('input:not([type=checkbox]), select')]
    .filter((each) => parseFloat(getComputedStyle(each).fontSize) < 16).map(({ id }) => id)`;
  assert.deepEqual(await page.evaluate(small), []);
  await page.getByRole('button', { name: 'Add plant' }).tap();
  const { y } = await boxOf(page.locator('#add'));
  await page.locator('#add-submit').tap();
  await page.getByText('Enter a name of up to').waitFor();
  assert.equal((await boxOf(page.locator('#add'))).y, y, 'the dialog grows downwards');
});

inBrowser('the fields of a plant are on the columns of the table', async (t) => {
  const { page, app } = await openStore(t);
  const bob = await app.token('bob');
  for (const owners of ['one', 'two']) {
    if (owners === 'two') await app.call('POST', '/plants', { token: bob, json: { name: 'Ivy' } });
    await page
      .getByRole('columnheader', { name: 'Owner' })
      .waitFor({ state: owners === 'two' ? 'visible' : 'hidden' });
    for (const width of [640, 900, 1280, 1920]) {
      await page.setViewportSize({ width, height: 740 });
      await page.getByRole('button', { name: 'Edit Ficus' }).click();
      for (const field of ['name', 'tag']) {
        const cell = await boxOf(page.locator(`.head .${field}`));
        const input = await boxOf(page.locator(`#edit-${field}`));
        const paddingPx = 13; // with the border
        assert.ok(Math.abs(input.x + paddingPx - cell.x) <= 1, `${field}, ${width} px, ${owners}`);
      }
      await page.getByRole('button', { name: 'Cancel' }).click();
    }
  }
});
