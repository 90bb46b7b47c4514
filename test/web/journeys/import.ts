/**
 * Importing a file on the page.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { assertNames, choose, done, namesOf, submit, toast } from '../actions.ts';
import { until } from '../../support/until.ts';
import { inBrowser, openStore, shelfNames } from '../store.ts';

inBrowser('a file is shown, its good rows are added, and the others named and saved', async (t) => {
  const store = await openStore(t, { plants: [] });
  const { page, errors } = store;
  await page.getByRole('button', { name: 'Import a file' }).click();
  await page.locator('#import').waitFor();
  await choose(page, 'plants.csv', 'Name;Tag\nMonstera;indoor\n"Ficus;\n;herbs\nAloe;\n;x\n');
  await page.getByText('plants.csv: 5 rows').waitFor();
  assert.deepEqual(await page.locator('#import-rows tr:first-child td').allTextContents(), [
    'line 2',
    'Monstera',
    'indoor',
    '',
  ]);
  await submit(page).press('Enter');
  await done(page, 'Added 2 plants; 3 rows were refused.');
  const reasons = await page.locator('#import-refusals tr').allInnerTexts();
  assert.match(reasons[0] ?? '', /^line 3\s+"Ficus;\s+The quotes do not match\./);
  assert.match(reasons[1] ?? '', /^line 4\s+herbs\s+The name is empty\./);
  assert.match(reasons[2] ?? '', /^line 6\s+x\s+The name is empty\./);

  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save refused rows' }).click();
  const file = await download;
  assert.equal(file.suggestedFilename(), 'plants-refused.csv');
  const saved = readFileSync(await file.path(), 'utf8');
  assert.match(saved, /^\u{feff}name,tag,id,line,reason\n"""Ficus;",,,3,"The quotes /u);

  await page.getByRole('button', { name: 'Another file' }).click();
  // The file of the refused rows is fixed, and imported.
  const fixed = saved.replace('"""Ficus;"', 'Ficus').replace('\n,herbs,', '\nThyme,herbs,');
  await choose(page, 'plants-refused.csv', fixed);
  await submit(page).click();
  await done(page, 'Added 2 plants; 1 row was refused.');
  await page.locator('#import-hide').click();
  await page.locator('#rows').getByText('Thyme').waitFor();
  assert.deepEqual((await namesOf(store)).toSorted(), ['Aloe', 'Ficus', 'Monstera', 'Thyme']);
  // The browser reports each refusal.
  assert.deepEqual(
    errors.filter((error) => !/status of 400/.test(error)),
    [],
  );
});

inBrowser('a file can be dropped anywhere', async (t) => {
  const store = await openStore(t);
  const { page, errors } = store;
  const dataTransfer = await page.evaluateHandle(`
    const data = new DataTransfer();
    data.items.add(new File(['[{"name":"Dropped"}]'], 'plants.json'));
    data`);
  await page.dispatchEvent('body', 'dragover', { dataTransfer });
  await page.dispatchEvent('body', 'drop', { dataTransfer });
  await page.getByText('plants.json: 1 row').waitFor();
  assert.deepEqual(await page.locator('#import-rows td').allTextContents(), [
    'row 1',
    'Dropped',
    '',
    '',
  ]);
  await submit(page).click();
  await done(page, 'Added 1 plant.');
  await page.getByRole('button', { name: 'Another file' }).click();
  await choose(page, 'plants.json', '[{"name":"Dropped"}]'); // the same rows are other plants
  await submit(page).click();
  await done(page, 'Added 1 plant.');
  await page.getByRole('button', { name: 'Another file' }).click();
  await choose(page, 'plants.csv', 'name');
  await page.getByText('plants.csv: 0 rows').waitFor();
  await page.locator('#import-back').click();
  await choose(page, 'plants.csv', ' ');
  await page.getByRole('alert').getByText('The file is empty.').waitFor();
  const session = await page.context().newCDPSession(page);
  const drop = async (...files: string[]) => {
    const data = { items: [], files, dragOperationsMask: 1 };
    for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
      await session.send('Input.dispatchDragEvent', { type, x: 9, y: 9, data });
    }
  };
  await drop(import.meta.dirname);
  await page.getByRole('alert').getByText('not a folder.').waitFor();
  await drop(import.meta.filename, import.meta.filename);
  await page.getByRole('alert').getByText('Import one file at a time.').waitFor();
  assert.deepEqual((await namesOf(store)).slice(-3), ['Aloe vera', 'Dropped', 'Dropped']);
  assert.deepEqual(errors, []);
});

inBrowser('a file of a spreadsheet is read once its columns are known', async (t) => {
  const store = await openStore(t, { plants: [{ name: 'Möhre', tag: 'Küche' }] });
  const { page, errors } = store;
  const columns = page.locator('#import-columns');
  const rows = 'Möhre;3,50;Küche\r\nLauch;;\r\n;;\r\n';
  const german = `Bestand;;\r\n\r\nBezeichnung;Preis;Gruppe\r\n${rows}`;
  await choose(page, 'bestand.csv', Buffer.from(german, 'latin1'));
  await page.getByText('bestand.csv: 2 rows').waitFor();
  await submit(page).click();
  assert.ok(await page.locator('#import-preview').isVisible(), 'nobody has chosen the name');
  await page.getByLabel('Line 3 of the file').selectOption('the names of the columns');
  await columns.getByLabel('Name').selectOption('A: Bezeichnung (Möhre)');
  await columns.getByLabel('Tag').selectOption('C: Gruppe (Küche)');
  await page
    .getByText(
      'Read as Windows-1252. Skipped above the header: Bestand. Columns that are left out: B: Preis.',
    )
    .waitFor();
  await page.getByText('1 of 2 rows has the name and tag of a plant that you can see.').waitFor();
  await submit(page).click();
  await done(page, 'Added 2 plants.');
  await page.getByRole('button', { name: 'Another file' }).click();
  await choose(page, 'rows.csv', rows);
  await page.getByLabel('Line 1 of the file').selectOption('the first plant');
  await columns.getByLabel('Name').selectOption('A (Möhre)');
  await page.getByText('2 rows have the name of').waitFor({ state: 'hidden' });
  await submit(page).click();
  await done(page, 'Added 2 plants.');
  assert.deepEqual(await namesOf(store), ['Möhre', 'Möhre', 'Lauch', 'Möhre', 'Lauch']);
  await page.getByRole('button', { name: 'Another file' }).click();
  await choose(page, 'plants.xlsx', Buffer.from('504b0304', 'hex'));
  await page.getByRole('alert').getByText('save it as "CSV UTF-8"').waitFor();
  assert.deepEqual(errors, []);
});

inBrowser('an export that was edited is taken back, and an import is undone as one', async (t) => {
  const store = await openStore(t);
  const { page, errors } = store;
  await page.getByRole('button', { name: 'Export' }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  const saved = readFileSync(await (await download).path(), 'utf8');
  assert.match(saved, /^\u{feff}id,name,tag\n1,"Monstera deliciosa",indoor\n/u);
  const edited = saved.replace('Ficus lyrata', 'Ficus').replace(',herbs', ',kitchen');
  await choose(page, 'plants.csv', `${edited},Oak,\n`);
  await page.getByRole('button', { name: 'Update 2, add 1' }).waitFor();
  await page.getByText('New names for 1 plant: “Ficus lyrata” becomes “Ficus”').waitFor();
  await page.getByText('Rows that change nothing, because their plant is like that: 2.').waitFor();
  await submit(page).click();
  await done(page, 'Added 1 plant; updated 2; 2 were unchanged.');
  assert.deepEqual((await namesOf(store)).slice(1, 3), ['Ficus', 'Thymus vulgaris']);
  await page.locator('#import').getByRole('button', { name: 'Undo' }).click();
  await done(page, 'Undid the import of 3 plants.');
  assert.deepEqual(await namesOf(store), shelfNames);

  await page.getByRole('button', { name: 'Another file' }).click();
  await choose(page, 'plants.csv', 'name\nOak\nElm\n');
  await submit(page).click();
  await done(page, 'Added 2 plants.');
  await page.locator('#import-hide').click();
  await page.locator('.toast').getByRole('button', { name: 'Undo' }).click();
  await toast(page, 'Undid the import of 2 plants.').waitFor();
  await assertNames(page, shelfNames);

  await choose(page, 'plants.csv', 'name\nOak\n');
  await submit(page).click();
  await done(page, 'Added 1 plant.');
  await page.locator('#import-hide').click();
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  const undo = page.getByRole('button', { name: 'Undo the last import' });
  await undo.waitFor();
  assert.equal(await page.locator('.offer').count(), 0, 'the dialog offers it');
  await undo.click();
  await page.locator('#import-reading').getByText('Undid the import of 1 plant.').waitFor();
  await page.locator('#import-cancel:focus').click();
  await assertNames(page, shelfNames);
  assert.deepEqual(errors, []);
});

inBrowser('an import is undone after a reload, by going back to when it began', async (t) => {
  const store = await openStore(t, { context: {} });
  const { page, errors } = store;
  const second = () => Math.floor(Date.now() / 1_000); // as the field has it
  const created = second();
  await until('a later second', async () => second() > created);
  await choose(page, 'plants.csv', 'id,name,tag\n2,Ficus,\n,Oak,\n');
  await submit(page).click();
  await done(page, 'Added 1 plant; updated 1.');
  await page.reload();
  const imported = ['Monstera deliciosa', 'Ficus', 'Thymus vulgaris', 'Aloe vera', 'Oak'];
  await assertNames(page, imported);
  const open = async () => {
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('button', { name: 'Go back to a time' }).click();
  };
  await open();
  const go = page.getByRole('button', { name: 'Go back', exact: true });
  await go.waitFor();
  assert.deepEqual(await page.locator('#return-plants .entry-name').allInnerTexts(), [
    'Ficus → Ficus lyrata · indoor',
    'Oak',
  ]);
  await page.getByText('Earlier name or tag: 1 · To the bin: 1').waitFor();
  await page.getByLabel('Time', { exact: true }).fill('2999-01-01T00:00:00');
  await go.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.locator('#return-since-fault').getByText('The time is in the future.').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await open();
  await go.click();
  await toast(page, 'Went back: 2 plants changed.').waitFor();
  await assertNames(page, shelfNames);
  await page.getByRole('button', { name: 'Undo' }).click();
  await toast(page, 'Undone: 2 plants changed.').waitFor();
  await assertNames(page, imported);
  const others = errors.filter((text) => !text.includes('400')); // the time in the future
  assert.deepEqual(others, []);
});
