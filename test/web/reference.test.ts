/**
 * The reference at /docs in a real browser: wide and narrow, and by keyboard.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Page } from 'playwright-core';
import { startApp } from '../support/app.ts';
import { openPage, withoutBrowser } from '../support/browser.ts';
import { browserOfFile } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

const unfold = "document.querySelectorAll('details').forEach((one) => (one.open = true))";

/** How far the page can be scrolled sideways, in pixels. */
async function overflow(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - innerWidth');
}

it(
  'has an address for each operation, copies samples, and loads nothing from another origin',
  { skip },
  async (t) => {
    const { address } = await startApp(t);
    const permissions = ['clipboard-read', 'clipboard-write'];
    const { page, errors } = await openPage(browser(), 'about:blank', {
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
  },
);

it(
  'fits 1280, 360 and 320 px, shows the chosen language, and can be used by keyboard alone',
  { skip },
  async (t) => {
    const { address } = await startApp(t);
    const { page, errors } = await openPage(browser(), `${address}/docs`);
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
      assert.ok(heights.length > 5 && Math.max(...heights) < 2000, String(heights));
    }
    await page.evaluate(unfold);
    await page.setViewportSize({ width: 320, height: 640 });
    assert.ok((await overflow(page)) <= 0);
    assert.deepEqual(errors, []);
  },
);

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
