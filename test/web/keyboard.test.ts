import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startApp } from '../support/app.ts';
import { openPage, withoutBrowser } from '../support/browser.ts';
import { assertNames, browserOfFile, press, tabTo, toast } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

it(
  'the keyboard alone signs in, adds, finds, edits, selects and deletes in a grid',
  { skip },
  async (t) => {
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
    const rows = page.getByRole('grid', { name: 'Plants' }).getByRole('row');
    await page.locator('#grid[aria-rowcount="5"]').waitFor();
    const indexes = await rows.evaluateAll((all) =>
      all.map((row) => row.getAttribute('aria-rowindex')),
    );
    assert.deepEqual(indexes, ['1', '2', '3', '4', '5']);
    await tabTo(page, 'grid');
    await press(page, 'Home', 'ArrowDown', 'Space', 'Shift+ArrowDown');
    await page.getByText('2 plants selected').waitFor();
    await page.locator('#grid[aria-activedescendant=row-2]').waitFor(); // drawn in the same frame
    assert.equal(await page.getByRole('row', { selected: true }).count(), 2);
    await press(page, 'Delete');
    await toast(page, 'Deleted 2 plants.').waitFor();
    await assertNames(page, ['Aloe', 'Dill']);
    await page.locator('#grid:focus').waitFor();
    await press(page, 'Tab', 'Enter');
    await toast(page, 'Restored 2 plants.').waitFor();
    await page.locator('#grid:focus').waitFor();
    await press(page, 'Home', 'ArrowDown', 'Shift+ArrowDown', 'Backspace');
    await assertNames(page, ['Aloe', 'Dill']);
    await press(page, 'Home', 'F2');
    await page.locator('#edit-name:focus:not([readonly])').waitFor();
    await page.keyboard.insertText('Aloe vera');
    await press(page, 'Enter');
    await assertNames(page, ['Aloe vera', 'Dill']);
    await page.locator('#grid:focus').waitFor();
    await press(page, 'End');
    await page.locator('#grid[aria-activedescendant=row-1]').waitFor();
    await press(page, 'Enter');
    await page.getByRole('dialog', { name: 'Dill' }).waitFor();
    await press(page, 'Escape');
    assert.equal(await page.evaluate('document.activeElement.id'), 'grid', 'the focus is back');
  },
);
