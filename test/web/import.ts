/**
 * Imports on the page in a browser.
 */
import type { Locator, Page } from 'playwright-core';
import { until } from '../support/until.ts';

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
