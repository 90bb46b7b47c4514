/**
 * Finding, adding and deleting plants.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { assertNames, deleteChosen, namesOf, press, switchTab, tabTo, toast } from '../actions.ts';
import { countOn, inBrowser, openStore, shelfNames } from '../store.ts';

inBrowser('the keyboard alone adds, finds, edits, selects and deletes in a grid', async (t) => {
  const { page } = await openStore(t, { plants: [] });
  await tabTo(page, '#empty-add');
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
  await tabTo(page, '#grid');
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
  await page.locator('#edit-name:focus').waitFor();
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
});

inBrowser(
  'an empty store leads to the first plant, and each fault is shown beside its field',
  async (t) => {
    const store = await openStore(t, { plants: [] });
    const { page } = store;
    await page.getByRole('button', { name: 'Add your first plant' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Monstera');
    await page.keyboard.press('Enter');
    await page.getByText('Added “Monstera” with the id 1.').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await assertNames(page, ['Monstera']);
    assert.deepEqual(await namesOf(store), ['Monstera']);
    await countOn(page, '1 plant').waitFor();

    await page.getByRole('button', { name: 'Add plant' }).click();
    await page.keyboard.press('Enter');
    await page.locator('#add-name-fault').getByText('Enter a name of').waitFor();
    await page.getByRole('textbox', { name: 'Name' }).fill('  ');
    await page.getByRole('combobox', { name: 'Tag optional' }).fill('x'.repeat(101));
    await page.keyboard.press('Enter');
    await page.locator('#add-name-fault').getByText('Enter a name of').waitFor();
    await page.locator('#add-tag-fault').getByText('Enter a tag of up to 100').waitFor();
    assert.equal(await page.locator(':focus').getAttribute('id'), 'add-name');
    assert.equal(
      await page.getByRole('textbox', { name: 'Name' }).getAttribute('aria-invalid'),
      'true',
    );
    await page.getByRole('textbox', { name: 'Name' }).fill('Salvia');
    await page.getByRole('combobox', { name: 'Tag optional' }).fill('herbs');
    await page.getByText('Choose the id yourself').click();
    const id = page.getByRole('textbox', { name: 'Id optional' });
    for (const [text, fault] of [
      ['one', 'Enter a whole number'],
      ['0', 'Enter a whole number from 1'],
      ['9999999999999999', '"id" is too large.'], // the service refuses it
      ['1', 'already has a plant with the id 1'],
    ] as const) {
      await id.fill(text);
      await page.keyboard.press('Enter');
      await page.locator('#add-id-fault').getByText(fault).waitFor();
    }
    await id.fill('77');
    await page.keyboard.press('Enter');
    await page.getByText('Added “Salvia” with the id 77.').waitFor();
  },
);

inBrowser('deletes one plant or many at once, and brings all of them back', async (t) => {
  const store = await openStore(t);
  const { page } = store;
  const undo = page.getByRole('button', { name: 'Undo' });
  await page.getByText('Ficus lyrata').click();
  await deleteChosen(page);
  await toast(page, 'Deleted “Ficus lyrata”.').waitFor();
  await assertNames(
    page,
    shelfNames.filter((name) => name !== 'Ficus lyrata'),
  );
  await undo.click();
  await toast(page, 'Restored “Ficus lyrata”.').waitFor();
  await assertNames(page, shelfNames);
  await page.locator('#grid:focus').waitFor();

  await page.getByRole('checkbox', { name: 'Select Monstera' }).click();
  await page.getByRole('checkbox', { name: 'Select Thymus' }).click({ modifiers: ['Shift'] });
  await page.getByText('3 plants selected').waitFor();
  await deleteChosen(page);
  await toast(page, 'Deleted 3 plants.').waitFor();
  await assertNames(page, ['Aloe vera']);
  await countOn(page, '1 plant').waitFor();
  assert.deepEqual(await namesOf(store), ['Aloe vera']);
  const [message, keys] = await Promise.all(
    ['.toast', '#grid-keys'].map((place) => page.locator(place).last().boundingBox()),
  );
  assert.ok(message && keys && message.y + message.height < keys.y, 'it covers no key');
  await page.locator('#rows').getByText('Aloe vera').click();
  await page.getByRole('dialog', { name: 'Aloe vera' }).waitFor();
  await undo.click(); // above the dialog
  await toast(page, 'Restored 3 plants.').waitFor();
  await press(page, 'Escape');
  await assertNames(page, shelfNames);
  assert.deepEqual(await namesOf(store), shelfNames);
});

inBrowser('a plant that is added during an outage is added once, by itself', async (t) => {
  const store = await openStore(t, { plants: [] });
  const { page } = store;
  await page.getByRole('button', { name: 'Add your first plant' }).click();
  await switchTab(page, 'hidden'); // what it hears of the plant would show that the service responds
  let isOut = true;
  await page.route('**/plants?*', async (route) => {
    if (!isOut) return route.continue();
    await route.fetch();
    await route.abort();
  });
  await page.locator('#add-name').fill('Ivy');
  await press(page, 'Enter');
  await page.locator('#add-waiting').getByText('The service does not respond.').waitFor();
  await page.locator('#add-name').fill('Typed meanwhile');
  await press(page, 'Escape');
  isOut = false;
  await toast(page, 'Added “Ivy” with the id 1.').waitFor();
  await assertNames(page, ['Ivy']);
  assert.deepEqual(await namesOf(store), ['Ivy']);
  assert.equal(await page.locator('#add-name').inputValue(), 'Typed meanwhile');
});

inBrowser('copies or exports what it shows', async (t) => {
  const { page, app, token } = await openStore(t, {
    plants: [{ name: 'Rose, "red"', tag: 'bed 1' }, { name: 'Aloe' }, { name: 'Ivy' }],
  });
  const copied = () => page.evaluate('navigator.clipboard.readText()');
  await page.getByRole('button', { name: 'Show only the tag bed 1' }).click();
  await countOn(page, '1 plant').waitFor();
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('button', { name: 'Copy as curl' }).click();
  await toast(page, 'Copied.').waitFor();
  const header = '-H "Authorization: Bearer $PLANT_STORE_TOKEN"';
  assert.equal(
    await copied(),
    `curl '${app.address}/plants?fields=id,name,tag&tag=bed+1' ${header}`,
  );
  assert.ok(!(await page.content()).includes(token));

  await page.getByRole('button', { name: 'Remove the filter' }).click();
  await page.getByRole('checkbox', { name: 'Select Aloe' }).click();
  await deleteChosen(page);
  await assertNames(page, ['Rose, "red"', 'Ivy']);
  for (const [format, text] of [
    ['CSV', '\u{feff}id,name,tag\n1,"Rose, ""red""","bed 1"\n3,Ivy,\n'],
    [
      'JSON',
      '[\n{"id":1,"name":"Rose, \\"red\\"","tag":"bed 1"},\n{"id":3,"name":"Ivy","tag":""}\n]\n',
    ],
  ] as const) {
    await page.getByRole('button', { name: 'Export' }).click();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: format }).click();
    const file = await download;
    assert.equal(file.suggestedFilename(), `plants.${format.toLowerCase()}`);
    assert.equal(readFileSync(await file.path(), 'utf8'), text);
  }
});
