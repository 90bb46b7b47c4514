import assert from 'node:assert/strict';
import { inBrowser, openStore } from './store.ts';

const dayMs = 86_400_000;

inBrowser('a new token grants no more than the one of the page, and can get lost', async (t) => {
  const { page } = await openStore(t, {
    access: { scopes: ['plants:read'], expiresAtMs: Date.now() + 40 * dayMs },
  });
  await page.locator('#who').click();
  await page.locator('#tokens-open').click();
  const options = page.locator('#tokens-expiresAt option');
  const lifetimes = await options.allInnerTexts();
  assert.deepEqual(lifetimes.slice(1), ['for 7 days', 'for 30 days']);
  await page.getByRole('checkbox', { name: 'See plants' }).uncheck();
  await page.locator('#tokens-label').fill('x'.repeat(101));
  await page.locator('#tokens-submit').click();
  await page.locator('#tokens-label-fault').getByText('Enter a label of up to 100').waitFor();
  await page.locator('#tokens-label:focus').fill('lost');
  await page.locator('#tokens-submit').click();
  await page.getByText('Choose at least one.').waitFor();
  await page.getByRole('checkbox').check();
  await page.route(
    '**/tokens',
    async (route) => {
      await route.fetch();
      await route.abort();
    },
    { times: 1 },
  );
  await page.locator('#tokens-submit').click();
  await page.getByRole('alert').getByText('did not confirm that it created the token.').waitFor();
  await page.getByRole('button', { name: 'Revoke lost' }).waitFor();
  assert.equal(await page.locator('#tokens-label').inputValue(), 'lost');
});

inBrowser('revoking the token of the page signs out', async (t) => {
  const { page, app, token } = await openStore(t);
  await page.locator('#who').click();
  await page.locator('#tokens-open').click();
  const current = page.getByRole('listitem').filter({ hasText: 'this page' });
  await current.getByRole('button').click();
  await page.getByText('You are signed out').waitFor();
  await page.getByRole('button', { name: 'Revoke', exact: true }).click();
  await page.getByRole('heading', { name: 'Open your store' }).waitFor();
  assert.equal(await page.evaluate('sessionStorage.length'), 0);
  assert.equal((await app.call('GET', '/token', { token })).status, 401);
});
