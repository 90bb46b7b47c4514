import assert from 'node:assert/strict';
import { it } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import { browserOfFile, openStore, press, tabTo } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;
const dayMs = 86_400_000;

it('the keyboard alone creates a token, copies it, and revokes it', { skip }, async (t) => {
  const { page, app, errors } = await openStore(t, browser(), {
    context: { permissions: ['clipboard-read', 'clipboard-write'] },
  });
  const statusOf = async (token: string) => (await app.call('GET', '/plants', { token })).status;
  await page.locator('#who').focus();
  await press(page, 'Enter');
  await tabTo(page, 'tokens-open');
  await press(page, 'Enter');
  await page.getByRole('listitem').getByText('this page').waitFor();
  await page.keyboard.insertText('phone');
  await press(page, 'Tab', 'ArrowDown', 'Tab', 'Tab', 'Space'); // for 7 days, without writing
  await press(page, 'Enter');
  await page.locator('#tokens-copy:focus').waitFor();
  await press(page, 'Enter');
  await page.getByText('Copied.').waitFor();
  const token = String(await page.evaluate('navigator.clipboard.readText()'));
  const { json } = await app.call('GET', '/token', { token });
  const { scopes, expiresAt } = json as { scopes: string[]; expiresAt: string };
  assert.deepEqual(scopes, ['plants:read']);
  const lifetimeMs = Date.parse(expiresAt) - Date.now();
  assert.ok(lifetimeMs > 6.9 * dayMs && lifetimeMs <= 7 * dayMs);

  await press(page, 'Escape');
  await page.locator('#who:focus').waitFor();
  await press(page, 'Enter');
  await tabTo(page, 'tokens-open');
  await press(page, 'Enter');
  await page.getByText(token).waitFor(); // it is not lost before it is saved
  await page.getByRole('listitem').getByText('phone').waitFor();
  await tabTo(page, 'tokens-hide');
  await press(page, 'Enter');
  await page.locator('#tokens-label:focus').waitFor();
  assert.ok(!(await page.content()).includes(token));

  assert.equal(await statusOf(token), 200);
  await page.getByRole('button', { name: 'Revoke phone' }).focus();
  await press(page, 'Enter');
  await page.getByRole('dialog', { name: 'Revoke the token “phone”?' }).waitFor();
  await press(page, 'Tab', 'Enter');
  await page.getByText('Revoked “phone”.').waitFor();
  assert.equal(await statusOf(token), 401);
  await page.getByText('Expired and revoked').click();
  await page.getByRole('listitem').getByText('phone').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Revoke phone' }).count(), 0);
  assert.deepEqual(errors, []);
});

it('a new token grants no more than the one of the page, and can get lost', { skip }, async (t) => {
  const { page } = await openStore(t, browser(), {
    access: { scopes: ['plants:read'], expiresAtMs: Date.now() + 40 * dayMs },
  });
  await page.locator('#who').click();
  await page.locator('#tokens-open').click();
  const options = page.locator('#tokens-expiry option');
  await options.filter({ hasText: 'days' }).first().waitFor({ state: 'attached' }); // the dialog is loaded on demand
  const lifetimes = await options.allInnerTexts();
  assert.deepEqual(lifetimes.slice(1), ['for 7 days', 'for 30 days']);
  await page.getByRole('checkbox', { name: 'See plants' }).uncheck();
  await page.locator('#tokens-label').fill('x'.repeat(101));
  await page.locator('#tokens-submit').click();
  await page.getByText('Choose at least one.').waitFor();
  await page.getByRole('checkbox').check();
  await page.locator('#tokens-submit').click();
  await page.locator('#tokens-label-fault').getByText('too long').waitFor();
  await page.locator('#tokens-label:focus').fill('lost');
  await page.route(
    '**/tokens',
    async (route) => {
      await route.fetch();
      await route.abort();
    },
    { times: 1 },
  );
  await page.locator('#tokens-submit').click();
  await page.getByRole('alert').getByText('The response was lost.').waitFor();
  await page.getByRole('button', { name: 'Revoke lost' }).waitFor();
  assert.equal(await page.locator('#tokens-label').inputValue(), 'lost');
});

it('revoking the token of the page signs out', { skip }, async (t) => {
  const { page, app, token } = await openStore(t, browser());
  await page.locator('#who').click();
  await page.locator('#tokens-open').click();
  const current = page.getByRole('listitem').filter({ hasText: 'this page' });
  await current.getByRole('button').click();
  await page.getByText('This page signs out').waitFor();
  await page.getByRole('button', { name: 'Revoke', exact: true }).click();
  await page.getByRole('heading', { name: 'Open your store' }).waitFor();
  assert.equal(await page.evaluate('sessionStorage.length'), 0);
  assert.equal((await app.call('GET', '/token', { token })).status, 401);
});
