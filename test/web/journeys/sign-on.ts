/**
 * Signing in on the page through a real identity provider.
 */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { start, startExpired, tokenOf } from '../sign-on.ts';
import { tabTo, toast } from '../actions.ts';
import { inBrowser } from '../store.ts';

/** Enters a name on the page of the provider, and consents, with the keyboard alone. */
async function signInByKeyboard(page: Page, user: string): Promise<void> {
  await page.locator('input[name=login]').waitFor();
  await page.locator('input[name=login]').focus();
  await page.keyboard.type(user);
  await tabTo(page, 'input[name=password]');
  await page.keyboard.type('any');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Continue' }).waitFor();
  await tabTo(page, 'button[type=submit]');
  await page.keyboard.press('Enter');
}

const phone = { viewport: { width: 360, height: 640 }, colorScheme: 'dark' } as const;

inBrowser('a person signs in and out by keyboard, on a phone, in the dark', async (t) => {
  const { app, page, ourErrors } = await start(t, { context: phone });
  await page.locator('#sign-in-start').waitFor();
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  await page.evaluate(`location.hash = 'tag=indoor'`);
  await tabTo(page, '#sign-in-start');
  await page.keyboard.press('Enter');
  await signInByKeyboard(page, 'alice');
  await page.locator('#store').waitFor();
  assert.equal(page.url(), `${app.address}/#tag=indoor`, 'the code has left the address');
  await tabTo(page, '#who');
  await page.keyboard.press('Enter');
  const facts = await page.locator('#identity-facts').innerText();
  for (const fact of ['alice', 'main', 'Member', 'edit and delete'])
    assert.match(facts, RegExp(fact));
  await page.reload();
  await page.locator('#store').waitFor();
  await tabTo(page, '#who');
  await page.keyboard.press('Enter');
  await tabTo(page, '#sign-out');
  await page.keyboard.press('Enter');
  await page.locator('#sign-in-start').waitFor();
  assert.equal(await page.evaluate('sessionStorage.length'), 0);
  assert.deepEqual(ourErrors(), []);
});

inBrowser('an expired token is replaced without the person', async (t) => {
  const { page, ourErrors } = await startExpired(t);
  const expired = await tokenOf(page);
  await page.locator('#empty-add').click();
  await page.locator('#add-name').fill('Aloe');
  await page.keyboard.press('Enter');
  await page.locator('#add-done').getByText('Added “Aloe”').waitFor();
  assert.notEqual(await tokenOf(page), expired);
  assert.equal(await page.locator('#renew').isVisible(), false);
  assert.deepEqual(ourErrors(), []);
});

inBrowser(
  'a sign-in that fails or was not started here shows why, and leaves an open store',
  async (t) => {
    const { provider, app, page } = await start(t);
    const fault = page.locator('#sign-in-on-fault');
    for (const answer of ['code=c&state=s', 'error=access_denied&state=s']) {
      await page.goto(`${app.address}/?${answer}`);
      await fault.getByText('This sign-in was not started in this tab.').waitFor();
      assert.equal(page.url(), `${app.address}/`);
    }
    await page.locator('#sign-in-start').click();
    await page.getByRole('link', { name: 'Cancel' }).click();
    await fault.getByText('did not sign you in: access_denied.').waitFor();
    await provider.stop();
    await page.locator('#sign-in-start').click();
    await fault.getByText('does not respond, or does not accept this page.').waitFor();
    await page.locator('#sign-in-token').fill(await app.token('alice'));
    await page.keyboard.press('Enter');
    await page.locator('#store').waitFor();
    await page.goto(`${app.address}/?code=c&state=s`);
    await toast(page, 'This sign-in was not started in this tab.').waitFor();
    await page.locator('#store').waitFor();
    assert.equal(page.url(), `${app.address}/`);
  },
);
