import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startApp } from '../support/app.ts';
import { openPage, withoutBrowser } from '../support/browser.ts';
import { assertNames, browserOfFile, openStore, press, tabTo, toast } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

it('the keyboard alone signs in, adds, finds, selects and deletes', { skip }, async (t) => {
  const app = await startApp(t);
  const { page } = await openPage(browser(), app.address);
  t.after(() => page.context().close());
  await tabTo(page, 'sign-in-token');
  await page.keyboard.insertText(await app.token('alice'));
  await press(page, 'Enter');
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
  await tabTo(page, 'empty-add');
  await press(page, 'Enter');
  for (const name of ['Aloe', 'Basil', 'Chives', 'Dill']) {
    await page.keyboard.insertText(name);
    await press(page, 'Enter');
    await page.locator('#add-done').getByText(`Added “${name}”`).waitFor();
  }
  await press(page, 'Escape');
  await tabTo(page, 'grid');
  await press(page, 'Home', 'ArrowDown', 'Space', 'Shift+ArrowDown');
  await page.getByText('2 plants selected').waitFor();
  await page.locator('#grid[aria-activedescendant=row-2]').waitFor();
  await press(page, 'Delete');
  await page.getByRole('dialog', { name: 'Delete 2 plants?' }).waitFor();
  await press(page, 'Enter'); // nothing is deleted by accident
  await page.locator('#grid:focus').waitFor();
  await press(page, 'Delete', 'Tab', 'Enter');
  await toast(page, 'Deleted 2 plants.').waitFor();
  await assertNames(page, ['Aloe', 'Dill']);
  await page.locator('#grid:focus').waitFor();
  await press(page, 'End');
  await page.locator('#grid[aria-activedescendant=row-1]').waitFor();
  await press(page, 'Enter');
  await page.getByRole('dialog', { name: 'Dill' }).waitFor();
  await press(page, 'Escape');
  assert.equal(await page.evaluate('document.activeElement.id'), 'grid', 'the focus is back');
});

it('a control that disappears leaves the focus to the table', { skip }, async (t) => {
  const { page } = await openStore(t, browser());
  const isTableFocused = () => page.locator('#grid:focus').waitFor();
  await page.locator('#grid').focus();
  await press(page, 'Space');
  await page.locator('#selection-clear').focus();
  await press(page, 'Enter');
  await isTableFocused();
  await page.locator('.tag-bar').first().click();
  await page.locator('#filter-clear').waitFor(); // the focus would not move to a hidden button
  await page.locator('#filter-clear').focus();
  await press(page, 'Enter');
  await isTableFocused();
  await page.locator('#filter-input').fill('nothing');
  await press(page, 'Enter');
  await page.locator('#no-match-clear').waitFor();
  await page.locator('#no-match-clear').focus();
  await press(page, 'Enter');
  await isTableFocused();
});

it('the table has the semantics of a grid', { skip }, async (t) => {
  const { page } = await openStore(t, browser());
  await page.locator('#grid[aria-rowcount="5"]').waitFor();
  const rows = page.getByRole('grid', { name: 'Plants' }).getByRole('row');
  assert.equal(await rows.count(), 5);
  const indexes = await rows.evaluateAll((all) =>
    all.map((row) => row.getAttribute('aria-rowindex')),
  );
  assert.deepEqual(indexes, ['1', '2', '3', '4', '5']);
  await page.getByRole('checkbox', { name: 'Select Aloe vera' }).click();
  await page.getByRole('row', { selected: true }).getByText('Aloe vera').waitFor();
});
