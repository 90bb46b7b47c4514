/**
 * The reference at /docs in a real browser: wide and narrow, by keyboard, without its script, and below a path.
 */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { startApp } from '../../support/app.ts';
import { openPage } from '../../support/browser.ts';
import { startGateway } from '../../support/gateway.ts';
import { browser, inBrowser } from '../store.ts';

const unfold = "document.querySelectorAll('details').forEach((one) => (one.open = true))";

/** How far the page can be scrolled sideways, in pixels. */
async function overflow(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - innerWidth');
}

inBrowser(
  'fits 1280, 360 and 320 px, shows the chosen language, and can be used by keyboard alone',
  async (t) => {
    const { address } = await startApp(t);
    const { page, errors } = await openPage(await browser(), `${address}/docs`);
    t.after(() => page.context().close());
    assert.equal(await page.locator('details[open]').count(), 0, 'problems are folded');
    const shown = () =>
      page
        .locator('.sample:visible')
        .evaluateAll((samples) => [
          ...new Set(samples.map((sample) => sample.getAttribute('data-language'))),
        ]);
    assert.deepEqual(await shown(), ['curl']);
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
        assert.equal(
          await page.evaluate('document.documentElement.dataset.language'),
          'JavaScript',
        );
      }
      if (section === 'createPlant' && control === 'SUMMARY') {
        await page.keyboard.press('Enter');
        assert.ok(await page.evaluate('document.activeElement.parentElement.open'));
      }
    }
    for (const section of ['token', 'createPlant', 'paging', 'problems']) {
      assert.ok(reached.has(section), `${section} was not reached`);
    }

    await page.locator('#listPlants').getByRole('radio', { name: 'Python' }).check();
    assert.deepEqual(await shown(), ['Python']);
    await page.reload();
    assert.deepEqual(await shown(), ['Python']);

    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 844 });
      for (const language of ['JavaScript', 'Python', 'curl']) {
        await page.getByRole('radio', { name: language }).first().check();
        assert.ok((await overflow(page)) <= 0, `${language}, ${width} px`);
      }
      const heights = await page
        .locator('section.operation')
        .evaluateAll((sections) =>
          sections.map((section) => section.getBoundingClientRect().height),
        );
      assert.ok(heights.length > 5 && Math.max(...heights) < 3_000, String(heights));
    }
    await page.evaluate(unfold);
    await page.setViewportSize({ width: 320, height: 640 });
    assert.ok((await overflow(page)) <= 0);
    assert.deepEqual(errors, []);
  },
);

inBrowser('works without its script', async (t) => {
  const { address } = await startApp(t);
  const { page } = await openPage(await browser(), `${address}/docs`, { javaScriptEnabled: false });
  t.after(() => page.context().close());
  const samples = page.locator('#createPlant .sample');
  assert.equal(await samples.filter({ visible: true }).count(), 3);
  assert.equal(await page.getByRole('button').count(), 0);
  await page.locator('#createPlant').getByText('Problems').click();
  await page.locator('#createPlant').getByRole('link', { name: 'id-taken' }).waitFor();
});

inBrowser('works under a path prefix', async (t) => {
  const { address } = await startApp(t);
  const { address: prefix } = await startGateway(t, address, { prefix: '/nursery' });
  const { page, errors } = await openPage(await browser(), `${prefix}/docs`);
  t.after(() => page.context().close());
  const sample = await page.locator('#livez .sample').first().textContent();
  assert.ok(sample?.includes(`${prefix}/livez`), sample ?? '');
  const link = await page
    .getByRole('link', { name: 'Plant Store' })
    .evaluate((element) => String(element));
  assert.equal(link, `${prefix}/`);
  assert.deepEqual(errors, []);
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
