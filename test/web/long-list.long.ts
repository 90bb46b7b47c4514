import assert from 'node:assert/strict';
import { openPage } from '../support/browser.ts';
import { serve } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';
import { assertNames, browser, inBrowser, openStore, toast } from './store.ts';

inBrowser('scrolls to the end of a long list and back, with few rows at a time', async (t) => {
  const plants = 2_000;
  const { app, page } = await openStore(t, { plants: [], context: {} });
  const list = Array.from({ length: plants }, (_, at) => ({ id: at + 1, name: 'Ivy', tag: '' }));
  await app.database.fill(list);
  let reads = 0;
  page.on('request', (request) => (reads += Number(request.url().includes('/plants?'))));
  await page.reload();
  await page.getByText(/^more than \d+ plants$/).waitFor();
  const last = page.locator(`#rows [aria-rowindex="${plants + 1}"] .id`);
  await page.locator('#grid').focus();
  while (!(await last.isVisible())) await page.keyboard.press('End');
  assert.equal(await last.innerText(), '2000');
  await page.locator(`#grid[aria-rowcount="${plants + 1}"]`).waitFor();
  await page.getByText('2,000 plants', { exact: true }).waitFor();
  assert.ok((await page.locator('#rows .row').count()) < 60);
  assert.equal(reads, 9); // the last one finds the end

  await page.keyboard.press('Home');
  await page.locator('#rows .id').getByText('1', { exact: true }).waitFor();
});

inBrowser('a range selects exactly what is between its ends, or nothing', async (t) => {
  const { url, path } = databaseFile(t);
  const token = await fill(path, 600);
  const service = await serve(t, ['--database', url]);
  const { page } = await openPage(await browser(), `${service.address}/#token=${token}`);
  t.after(() => page.context().close());
  await page.getByText('more than 500 plants', { exact: true }).waitFor();
  /** Scrolls to the row with this number. */
  const row = async (number: number) => {
    await page.evaluate(`document.querySelector('#grid').scrollTop = ${(number - 4) * 44}`);
    const shown = page.locator(`#rows [aria-rowindex="${number + 1}"]`);
    await shown.getByText(String(number), { exact: true }).waitFor();
    return shown;
  };
  const press = async (number: number, ...modifiers: 'Shift'[]) =>
    (await row(number)).locator('input').click({ modifiers });
  const isSelected = async (number: number) => (await row(number)).getAttribute('aria-selected');

  await press(2);
  await press(300, 'Shift');
  await toast(page, 'Nothing was selected: you can select up to 200 plants at a time.').waitFor();
  await page.getByText('1 plant selected').waitFor();
  await press(201, 'Shift');
  await page.getByText('200 plants selected').waitFor();
  assert.deepEqual(await Promise.all([isSelected(1), isSelected(2)]), ['false', 'true']);
  assert.equal(await isSelected(201), 'true');
  assert.equal(await isSelected(202), 'false');
  await page.keyboard.press('Shift+ArrowDown');
  await page.getByText('200 plants selected').waitFor();
  assert.equal(await isSelected(202), 'false');

  await page.keyboard.press('Escape');
  await press(40, 'Shift');
  await page.getByText('1 plant selected').waitFor(); // a range needs a beginning that is shown
});

inBrowser('a range begins at its plant, also after its row has moved', async (t) => {
  const { page, app, token } = await openStore(t);
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
