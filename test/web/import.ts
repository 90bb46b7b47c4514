/**
 * Imports on the page in a browser.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Browser, Locator, Page } from 'playwright-core';
import { until } from '../support/until.ts';
import { namesOf, openStore, toast } from './store.ts';

const timeoutMs = 120_000;

/** Opens the dialog and chooses a file with this content. */
export async function choose(page: Page, name: string, text: string): Promise<void> {
  if (!(await page.locator('#import').isVisible())) {
    await page.getByRole('button', { name: 'Import', exact: true }).click();
  }
  const file = { name, mimeType: 'text/plain', buffer: Buffer.from(text) };
  await page.getByLabel('Choose a CSV or JSON file').setInputFiles(file);
}

export function submit(page: Page): Locator {
  return page.getByRole('button', { name: /^Import .* rows?$/ });
}

/** Waits until the import has ended with this message. */
export async function done(page: Page, text: string): Promise<void> {
  await page.locator('#import-done').getByText(text).waitFor({ timeout: timeoutMs });
}

/** Waits until the dialog shows that many added rows. */
export async function untilAdded(page: Page, count: number): Promise<void> {
  const shown = page.locator('#import-added');
  const isAdded = async () => Number((await shown.innerText()).replaceAll(',', '')) >= count;
  await until(`${count} rows are added`, isAdded, timeoutMs);
}

/** Stops the import and continues it, while the dialog is closed for a moment. */
export async function importInterrupted(
  t: TestContext,
  browser: Browser,
  rows: number,
): Promise<void> {
  const store = await openStore(t, browser, { plants: [] });
  const { page } = store;
  const isWrong = (at: number) => at % (rows / 4) === 7;
  const lines = Array.from({ length: rows }, (_, at) => (isWrong(at) ? ',x' : `Plant ${at},a`));
  await choose(page, 'plants.csv', ['name,tag', ...lines].join('\n'));
  await submit(page).click();
  await untilAdded(page, rows / 4);
  await page.getByRole('button', { name: 'Stop' }).click();
  await done(page, 'Not complete.');
  await page
    .locator('#import-done')
    .getByText(/ rows? left\.$/)
    .waitFor();

  await page.getByRole('button', { name: 'Continue' }).click();
  await page.locator('#import-stop').waitFor();
  await page.keyboard.press('Escape');
  await toast(page, 'The import continues.').waitFor();
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  const bad = lines.keys().filter(isWrong).toArray();
  await done(page, `${bad.length} rows were refused.`);
  const named = await page.locator('#import-refusals td:first-child').allTextContents();
  assert.deepEqual(
    named,
    bad.map((at) => `line ${at + 2}`),
  );
  const good = lines.flatMap((_, at) => (isWrong(at) ? [] : [`Plant ${at}`]));
  assert.deepEqual((await namesOf(store)).toSorted(), good.toSorted());
}
