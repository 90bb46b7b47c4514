/**
 * Long bins and histories, and a service without a log.
 */
import assert from 'node:assert/strict';
import type { TestApp } from '../support/app.ts';
import { deleteChosen, inBrowser, openBin, openStore, press, shelf, toast } from './store.ts';

inBrowser('a long bin has more pages', async (t) => {
  const names = Array.from({ length: 120 }, (_, at) => `Plant ${at + 1}`);
  const { page, app, token } = await openStore(t, {
    plants: names.map((name) => ({ name })),
  });
  for (const id of names.keys()) await app.call('DELETE', `/plants/${id + 1}`, { token });
  await openBin(page);
  const shown = page.locator('#bin-plants .entry-name');
  await shown.nth(49).waitFor();
  assert.equal(await shown.count(), 50);
  await page.getByRole('button', { name: 'Restore Plant 71' }).focus();
  await page.route('**/bin?*', (route) => route.fulfill({ status: 500 }), { times: 1 });
  await press(page, 'Tab', 'Enter');
  await page.locator('#bin .failure').filter({ visible: true }).waitFor();
  assert.equal(await shown.count(), 50);
  await page.locator('#bin-more').click();
  await shown.nth(99).waitFor();
  assert.equal(await shown.count(), 100);
  await page.getByRole('button', { name: 'Restore Plant 71' }).click();
  await page.getByText('Restored “Plant 71”.').waitFor();
  await page.locator('#bin-more').click();
  await page.locator('#bin-more').waitFor({ state: 'hidden' });
  const expected = names.filter((name) => name !== 'Plant 71').toReversed();
  assert.deepEqual(await shown.allTextContents(), expected);
});

inBrowser('without a log, Undo says what to do, and the bin is empty', async (t) => {
  const { page } = await openStore(t, { keepChangesMs: 0 });
  await page.getByRole('checkbox', { name: 'Select Thymus' }).click();
  await deleteChosen(page);
  await page.getByRole('button', { name: 'Undo' }).click();
  await toast(page, 'Add “Thymus vulgaris” with the tag “herbs” again.').waitFor();
  await openBin(page);
  await page.getByText('The bin is empty.').waitFor();
});

inBrowser('a history that is cut says so', async (t) => {
  const { page, app, token } = await openStore(t, { plants: shelf.slice(0, 2) });
  await change(app, token, 99);
  await page.locator('#rows').getByText('Ficus lyrata').click();
  await page.locator('#plant-steps li').nth(99).waitFor();
  assert.equal(await page.locator('#plant-cut').isVisible(), false);
  await press(page, 'Escape');
  await change(app, token, 1);
  await page.locator('#rows').getByText('Ficus lyrata').click();
  await page.getByText('Only the latest 100 changes are shown.').waitFor();
});

/** Changes the tag of the second plant. */
async function change({ call }: TestApp, token: string, times: number): Promise<void> {
  const tags = [...Array.from({ length: times }).keys()].map((at) => `tag ${times} ${at}`);
  for (const tag of tags) await call('PATCH', '/plants/2', { token, json: { tag } });
}
