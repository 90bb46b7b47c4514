/**
 * Sharing on the page.
 */
import type { Page } from 'playwright-core';
import type { TestApp } from '../support/app.ts';

/** The shares of the user with this token, as the service lists them. */
export const sharesOf = async (app: TestApp, token: string) =>
  (await app.call('GET', '/shares', { token })).json;

/** Opens the dialog, and waits until it lists the shares. */
export async function openSharing(page: Page): Promise<void> {
  await page.locator('#who').click();
  await page.getByRole('button', { name: 'Sharing' }).click();
  await page.getByText('Loading …').first().waitFor({ state: 'hidden' });
}
