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
