/**
 * Rare events on the page.
 */
import assert from 'node:assert/strict';
import { startApp } from '../support/app.ts';
import { openPage } from '../support/browser.ts';
import { choose, done, submit } from './import.ts';
import { assertNames, browser, deleteChosen, inBrowser, openStore, toast } from './store.ts';

inBrowser('a reload while a link opens does not lose its token', async (t) => {
  const app = await startApp(t);
  const { page } = await openPage(await browser(), 'about:blank');
  t.after(() => page.context().close());
  const asked = Promise.withResolvers<void>();
  await page.route('**/token', () => asked.resolve(), { times: 1 }); // the service does not respond
  await page.goto(`${app.address}/#token=${await app.token('alice')}`);
  await asked.promise;
  await page.reload();
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
  assert.equal(page.url(), `${app.address}/`);
});

inBrowser('works if the browser blocks the data of sites', async (t) => {
  const app = await startApp(t);
  const { page, errors } = await openPage(await browser(), 'about:blank');
  t.after(() => page.context().close());
  // What Chromium does if its user blocks them.
  await page.addInitScript(`
    for (const name of ['localStorage', 'sessionStorage', 'indexedDB']) {
      Object.defineProperty(window, name, {
        get: () => { throw new DOMException('blocked', 'SecurityError') },
      });
    }
  `);
  await page.goto(app.address);
  await page.locator('#sign-in-token').fill(await app.token('alice'));
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
  await choose(page, 'plants.csv', 'name\nAloe');
  await submit(page).click();
  await done(page, 'Added 1 plant.');
  await page.locator('#import-hide').click();
  await page.locator('#rows').getByText('Aloe').waitFor();
  await page.evaluate(`location.hash = 'token=${await app.token('bob')}'`);
  await page.locator('#confirm-yes').click();
  await page.getByRole('button', { name: 'bob' }).waitFor();
  await page.getByRole('button', { name: 'bob' }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Open your store' }).waitFor();
  await page.goto(`${app.address}/docs`);
  await page.locator('.samples input').first().waitFor({ state: 'attached' });
  assert.deepEqual(errors, []);
});

inBrowser('a list that was read before a delete does not bring the row back', async (t) => {
  const { page } = await openStore(t);
  await page.getByText('4 plants', { exact: true }).waitFor();
  const listed = Promise.withResolvers<void>();
  const deleted = Promise.withResolvers<void>();
  await page.route('**/plants/*', async (route) => {
    if (route.request().method() === 'DELETE') await listed.promise;
    await route.continue();
  });
  await page.route(
    '**/plants?*q=indoor*',
    async (route) => {
      const response = await route.fetch();
      listed.resolve();
      await deleted.promise;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  await page.getByRole('checkbox', { name: 'Select Ficus' }).click();
  await deleteChosen(page);
  await page.getByRole('button', { name: 'Show only the tag indoor' }).first().click();
  await toast(page, 'Deleted “Ficus lyrata”.').waitFor();
  deleted.resolve();
  await page.getByText('1 plant', { exact: true }).waitFor();
  await assertNames(page, ['Monstera deliciosa']);
});
