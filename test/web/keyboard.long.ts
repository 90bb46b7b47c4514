import { inBrowser, openStore, press } from './store.ts';

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
  await page.locator('#filter-input').fill('nothing');
  await press(page, 'Enter');
  await page.locator('#no-match-clear').waitFor();
  await page.locator('#no-match-clear').focus();
  await press(page, 'Enter');
  await isTableFocused();
});
