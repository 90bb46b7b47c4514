import assert from 'node:assert/strict';
import { it } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import { addWithRevokedToken } from './interruptions.ts';
import { browserOfFile, changeUser, namesOf, openStore } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

it('a revoked token loses no typed text, and another one continues', { skip }, async (t) => {
  const store = await addWithRevokedToken(t, browser());
  const { page, app } = store;
  await page.getByRole('button', { name: 'Not now' }).click();
  assert.equal(await page.locator('#add-name').inputValue(), 'A name that took long to type');
  await page.locator('#add-waiting').getByText('Your token no longer works.').waitFor();
  await page.locator('#add-submit').click();
  await page.getByRole('button', { name: 'Not now' }).click();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Paste another token' }).click();
  const token = await app.token('alice');
  await page.locator('#renew-token').fill('plant_wrong');
  await page.keyboard.press('Enter');
  await page.locator('#renew-token-fault').getByText('Paste the whole token').waitFor();
  await page.locator('#renew-token').fill(token);
  await page.keyboard.press('Enter');
  await page.locator('#rows').getByText('A name that took long to type').waitFor();
  assert.equal((await namesOf({ ...store, token })).length, 5);
  await page.getByRole('region', { name: 'Connection' }).waitFor({ state: 'hidden' });
});

it('a late response for one user changes nothing for the next', { skip }, async (t) => {
  const { page, app } = await openStore(t, browser());
  const { promise: bobIsOpen, resolve } = Promise.withResolvers<void>();
  const { promise: isLate, resolve: responded } = Promise.withResolvers<void>();
  await page.route(
    '**/plants?*',
    async (route) => {
      const response = await route.fetch();
      await bobIsOpen;
      await route.fulfill({ response }).catch(() => {}); // nobody may wait for it any more
      responded();
    },
    { times: 1 },
  );
  await page.getByRole('button', { name: 'Add plant' }).click();
  await page.locator('#add-name').fill('Of alice');
  const sent = page.waitForRequest('**/plants?*');
  await page.keyboard.press('Enter');
  await sent;
  await changeUser(page, await app.token('bob'));
  await page.getByRole('button', { name: 'bob' }).waitFor();
  resolve();
  await isLate;
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
  assert.equal(await page.locator('#add-name').inputValue(), '');
});
