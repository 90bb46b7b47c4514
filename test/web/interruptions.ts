/**
 * What interrupts somebody on the page.
 */
import type { TestContext } from 'node:test';
import { idOf } from '../support/tokens.ts';
import { openStore, type OpenStore } from './store.ts';

/** Opens the dialog, revokes the token, and adds the plant that was typed. */
export async function addWithRevokedToken(t: TestContext): Promise<OpenStore> {
  const store = await openStore(t);
  const { page, app, token } = store;
  await page.getByRole('button', { name: 'Add plant' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill('A name that took long to type');
  await app.storage.identity.revokeToken(idOf(token), Date.now());
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Your token no longer works' }).waitFor();
  return store;
}
