import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import { assertNames, browserOfFile, deleteChosen, openStore, toast } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

it('a list that was read before a delete does not bring the row back', { skip }, async (t) => {
  const { page } = await openStore(t, browser());
  await page.getByText('4 plants, by tag').waitFor();
  const listed = Promise.withResolvers<void>();
  const deleted = Promise.withResolvers<void>();
  await page.route('**/plants/*', async (route) => {
    if (route.request().method() === 'DELETE') await listed.promise;
    await route.continue();
  });
  await page.route(
    '**/plants?*tag=indoor*',
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

it('an export has no plant that was deleted', { skip }, async (t) => {
  const { page } = await openStore(t, browser());
  await page.getByRole('checkbox', { name: 'Select Ficus' }).click();
  await deleteChosen(page);
  await page.locator('#rows').getByText('Ficus').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Export' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  const text = readFileSync(await (await download).path(), 'utf8');
  assert.doesNotMatch(text, /Ficus/);
});
