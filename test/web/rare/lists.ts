/**
 * Long lists, bins and histories, and lists that change.
 */
import assert from 'node:assert/strict';
import type { TestApp } from '../../support/app.ts';
import { assertNames, deleteChosen, openBin, press, switchTab, toast } from '../actions.ts';
import { countOn, inBrowser, openStore, shelf } from '../store.ts';

inBrowser(
  'a range selects exactly what is between its ends, and nothing beyond the limit',
  async (t) => {
    const { app, page } = await openStore(t, { plants: [], context: {} });
    const list = Array.from({ length: 10_001 }, (_, at) => ({ id: at + 1, name: 'Ivy', tag: '' }));
    await app.database.fill(list);
    await page.reload();
    await countOn(page, '10,001 plants').waitFor();
    /** Scrolls to the row with this number. */
    const row = async (number: number) => {
      await page.evaluate(`document.querySelector('#grid').scrollTop = ${(number - 4) * 44}`);
      const shown = page.locator(`#rows [aria-rowindex="${number + 1}"]`);
      await shown.getByText(String(number), { exact: true }).waitFor();
      return shown;
    };
    const choose = async (number: number, ...modifiers: 'Shift'[]) =>
      (await row(number)).locator('input').click({ modifiers });
    const isSelected = async (number: number) => (await row(number)).getAttribute('aria-selected');

    await choose(2);
    await choose(300, 'Shift');
    await page.getByText('299 plants selected').waitFor();
    assert.deepEqual(await Promise.all([1, 2].map(isSelected)), ['false', 'true']);
    assert.deepEqual([await isSelected(300), await isSelected(301)], ['true', 'false']);
    const refusal = toast(page, 'Nothing was selected: you can select up to 10,000 plants');
    await page.getByRole('button', { name: 'Select all 10,001' }).click();
    await refusal.waitFor();
    await page.locator('#grid').focus();
    await press(page, 'End');
    await page.locator('#rows .active').getByText('10001').waitFor();
    await press(page, 'ControlOrMeta+a');
    await refusal.nth(1).waitFor();
    await page.getByText('299 plants selected').waitFor();

    await page.keyboard.press('Escape');
    await choose(40, 'Shift');
    await page.getByText('1 plant selected').waitFor(); // a range needs a beginning that is shown
  },
);

inBrowser('a page that is far behind reads its rows again, and moves nothing', async (t) => {
  const { app, page } = await openStore(t, { plants: [], context: {} });
  const list = Array.from({ length: 400 }, (_, at) => {
    const id = (at + 1) * 10;
    return { id, name: `Ivy ${id}.`, tag: '' };
  });
  await app.database.fill(list);
  await page.reload();
  await countOn(page, '400 plants').waitFor();
  await page.evaluate(`document.querySelector('#grid').scrollTop = 100 * 44 + 7`);
  await page.getByRole('checkbox', { name: 'Select Ivy 1030.' }).click();
  const shown = page.locator('#rows .row').filter({ hasText: 'Ivy 1030.' });
  const before = await shown.boundingBox();
  await switchTab(page, 'hidden');
  const token = await app.token('bob', { role: 'manager' });
  for (let id = 1; id < 1_010; id++) {
    if (id % 10 !== 0) await app.call('POST', '/plants', { token, json: { id, name: 'Moss' } });
  }
  let reads = 0;
  page.on('request', (request) => (reads += Number(request.url().includes('/plants?'))));
  await switchTab(page, 'visible');
  await countOn(page, '1,309 plants').waitFor();
  assert.deepEqual(await shown.boundingBox(), before);
  await page.getByText('1 plant selected').waitFor();
  assert.equal(reads, 3);
});

inBrowser('a range begins at its plant, also after its row has moved', async (t) => {
  const { page, app, token } = await openStore(t);
  await switchTab(page, 'hidden');
  await page.getByRole('checkbox', { name: 'Select Thymus' }).click();
  await app.call('DELETE', '/plants/1', { token });
  await page.getByText('Monstera deliciosa').click();
  await page.getByText('Someone has deleted this plant').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await assertNames(page, ['Ficus lyrata', 'Thymus vulgaris', 'Aloe vera']);
  await page.getByRole('checkbox', { name: 'Select Ficus' }).click({ modifiers: ['Shift'] });
  await page.getByText('2 plants selected').waitFor();
  await page.getByRole('row', { selected: true }).getByText('Ficus lyrata').waitFor();
});

inBrowser('5,000 plants are deleted as one, and come back as one from the bin', async (t) => {
  const store = await openStore(t, { plants: [], context: {} });
  const { app, page, token, errors } = store;
  const plants = Array.from({ length: 5_012 }, (_, at) => ({
    id: at + 1,
    name: at < 12 ? `Fern ${at}` : `Ivy ${at}`,
    tag: '',
  }));
  await app.database.fill(plants);
  await page.reload();
  await countOn(page, '5,012 plants').waitFor();
  await page.locator('#search-input').fill('ivy');
  await countOn(page, '5,000 plants').waitFor();
  await page.locator('#select-all').click();
  await page.getByRole('button', { name: 'Select all 5,000 that match' }).click();
  await page.getByText('5,000 plants selected', { exact: true }).waitFor();
  const timeout = 300_000;
  const started = Date.now();
  await deleteChosen(page);
  await page.getByRole('dialog').getByRole('button', { name: 'Delete 5,000 plants' }).click();
  await toast(page, 'Deleted 5,000 plants.').waitFor({ timeout });
  t.diagnostic(`deleted in ${Date.now() - started} ms`);
  await page.getByRole('heading', { name: 'No plants containing' }).waitFor();
  const count = async () => {
    const { headers } = await app.call('GET', '/plants?limit=1&count=true', { token });
    return headers.get('total-count');
  };
  assert.equal(await count(), '12');
  await openBin(page);
  await page.getByRole('button', { name: 'Restore all 5,000 plants deleted by alice' }).click();
  await page.locator('#bin-done').getByText('Restored 5,000 plants.').waitFor({ timeout });
  await page.getByText('The bin is empty.').waitFor();
  assert.equal(await count(), '5012');
  await press(page, 'Escape');
  await countOn(page, '5,000 plants').waitFor();
  assert.deepEqual(errors, []);
});

inBrowser('a list that was read before a delete does not bring the row back', async (t) => {
  const { page } = await openStore(t);
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
  await countOn(page, '1 plant').waitFor();
  await assertNames(page, ['Monstera deliciosa']);
});

inBrowser('a control that disappears leaves the focus to the table', async (t) => {
  const { page } = await openStore(t);
  const isTableFocused = () => page.locator('#grid:focus').waitFor();
  await page.locator('#grid').focus();
  await press(page, 'Space');
  await page.locator('#selection-clear').focus();
  await press(page, 'Enter');
  await isTableFocused();
  await page.locator('.tag-button').first().click();
  await page.locator('#filter-clear').waitFor(); // the focus would not move to a hidden button
  await page.locator('#filter-clear').focus();
  await press(page, 'Enter');
  await isTableFocused();
  await page.locator('#search-input').fill('nothing');
  await page.locator('#no-match-clear').waitFor();
  await page.locator('#no-match-clear').focus();
  await press(page, 'Enter');
  await isTableFocused();
});

inBrowser('a long bin has more pages', async (t) => {
  const names = Array.from({ length: 120 }, (_, at) => `Plant ${at + 1}`);
  const { page, app } = await openStore(t, {
    plants: names.map((name) => ({ name })),
  });
  const users = ['bob', 'maria', 'li'].map((user) => app.token(user, { role: 'manager' }));
  const others = await Promise.all(users); // nobody deletes two at once
  for (const id of names.keys()) {
    await app.call('DELETE', `/plants/${id + 1}`, { token: others[id % 3] ?? '' });
  }
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
