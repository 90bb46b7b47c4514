import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Page } from 'playwright-core';
import type { TestApp } from '../support/app.ts';
import { withoutBrowser } from '../support/browser.ts';
import {
  assertNames,
  browserOfFile,
  deleteChosen,
  openStore,
  press,
  shelf,
  toast,
} from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

it('the bin shows what was deleted by whom, and brings it back', { skip }, async (t) => {
  const { page, app, errors } = await openStore(t, browser());
  const bob = await app.token('bob');
  const maria = await app.token('maria', { role: 'manager' });
  await app.call('POST', '/plants', { token: bob, json: { name: 'Ivy' } });
  await app.call('DELETE', '/plants/5', { token: bob });
  await app.call('DELETE', '/plants/2', { token: maria });
  await page.getByRole('checkbox', { name: 'Select Thymus' }).click();
  await deleteChosen(page);
  await toast(page, 'Deleted “Thymus vulgaris”.').waitFor();
  await openBin(page);
  await page.locator('#bin-plants li').nth(2).waitFor();
  const entries = await page.locator('#bin-plants li').allInnerTexts();
  assert.deepEqual(
    entries.map((text) => text.replace(/ · [^·]*$/, '').split(/\n+/)),
    [
      ['Thymus vulgaris', 'Restore', 'herbs · deleted by alice'],
      ['Ficus lyrata', 'Restore', 'indoor · deleted by maria'],
      ['Ivy', 'Restore', 'owned by bob · deleted by bob'],
    ],
  );
  await page.getByRole('button', { name: 'Restore Ficus lyrata' }).focus();
  await press(page, 'Enter');
  await page.getByText('Restored “Ficus lyrata”.').waitFor();
  const focused = () => page.evaluate('document.activeElement.ariaLabel');
  assert.equal(await focused(), 'Restore Ivy', 'the button that took its place');
  await press(page, 'Enter');
  await page.getByText('Restored “Ivy”.').waitFor();
  assert.equal(await focused(), 'Restore Thymus vulgaris');
  await press(page, 'Escape');
  await page.locator('#more-open:focus').waitFor();
  await assertNames(page, ['Monstera deliciosa', 'Ficus lyrata', 'Aloe vera', 'Ivy']);
  assert.equal((await app.call('GET', '/plants/5', { token: bob })).status, 200);
  assert.deepEqual(errors, []);
});

it(
  'the bin says why a plant cannot be restored, and the last one leaves it empty',
  { skip },
  async (t) => {
    const { page, app, token } = await openStore(t, browser());
    for (const id of [1, 2, 3, 4]) await app.call('DELETE', `/plants/${id}`, { token });
    await openBin(page);
    await page.getByRole('button', { name: 'Restore Ficus lyrata' }).waitFor();
    for (const id of [2, 3]) await app.call('POST', `/plants/${id}/restore`, { token });
    await app.call('PATCH', '/plants/3', { token, json: { tag: '' } });
    await app.call('POST', '/plants', { token, json: { name: 'Other', id: 1 } });
    await app.call('DELETE', '/plants/1', { token });
    await page.getByRole('button', { name: 'Restore Ficus lyrata' }).click();
    await page.getByText('Restored “Ficus lyrata”.').waitFor();
    await page.getByRole('button', { name: 'Restore Thymus vulgaris' }).click();
    await page.getByText('“Thymus vulgaris” was changed or replaced').waitFor();
    await page.getByRole('button', { name: 'Restore Monstera deliciosa' }).click();
    await page.getByText('Restored “Other”.').waitFor();
    await page.getByRole('button', { name: 'Restore Aloe vera' }).click();
    await page.getByText('The bin is empty.').waitFor();
    await page.getByText('Restored “Aloe vera”.').waitFor();
    await page.locator('#bin-list-title:focus').waitFor();
    await press(page, 'Escape');
    await assertNames(page, ['Other', 'Ficus lyrata', 'Thymus vulgaris', 'Aloe vera']);
  },
);

it('a long bin has more pages', { skip }, async (t) => {
  const names = Array.from({ length: 120 }, (_, at) => `Plant ${at + 1}`);
  const { page, app, token } = await openStore(t, browser(), {
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

it('a token that cannot write sees the bin without a way to restore', { skip }, async (t) => {
  const access = { scopes: ['plants:read'] } as const;
  const { page, app } = await openStore(t, browser(), { access });
  await app.call('DELETE', '/plants/1', { token: await app.token('alice') });
  await openBin(page);
  await page.locator('#bin-plants').getByText('Monstera deliciosa').waitFor();
  assert.equal(await page.locator('#bin-plants button').count(), 0);
});

it('without a log, Undo says what to do, and the bin is empty', { skip }, async (t) => {
  const { page } = await openStore(t, browser(), { keepChangesMs: 0 });
  await page.getByRole('checkbox', { name: 'Select Thymus' }).click();
  await deleteChosen(page);
  await page.getByRole('button', { name: 'Undo' }).click();
  await toast(page, 'Add “Thymus vulgaris” with the tag “herbs” again.').waitFor();
  await openBin(page);
  await page.getByText('The bin is empty.').waitFor();
});

it('a history that is cut says so', { skip }, async (t) => {
  const { page, app, token } = await openStore(t, browser(), { plants: shelf.slice(0, 2) });
  await change(app, token, 99);
  await page.locator('#rows').getByText('Ficus lyrata').click();
  await page.locator('#plant-steps li').nth(99).waitFor();
  assert.equal(await page.locator('#plant-cut').isVisible(), false);
  await press(page, 'Escape');
  await change(app, token, 1);
  await page.locator('#rows').getByText('Ficus lyrata').click();
  await page.getByText('Only the latest 100 changes are shown.').waitFor();
});

async function openBin(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('button', { name: 'Bin' }).click();
}

/** Changes the tag of the second plant. */
async function change({ call }: TestApp, token: string, times: number): Promise<void> {
  const tags = [...Array.from({ length: times }).keys()].map((at) => `tag ${times} ${at}`);
  for (const tag of tags) await call('PATCH', '/plants/2', { token, json: { tag } });
}
