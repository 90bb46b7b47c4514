import assert from 'node:assert/strict';
import { it } from 'node:test';
import { openPage, withoutBrowser } from '../support/browser.ts';
import { serve } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';
import { assertNames, browserOfFile, openStore, toast } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

it('a range selects exactly what is between its ends, or nothing', { skip }, async (t) => {
  const { url, path } = databaseFile(t);
  const token = await fill(path, 600);
  const service = await serve(t, ['--database', url]);
  const { page } = await openPage(browser(), `${service.address}/#token=${token}`);
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

it('a range begins at its plant, also after its row has moved', { skip }, async (t) => {
  const { page, app, token } = await openStore(t, browser());
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
