/**
 * Importing a file on the page.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { choose, done, namesOf, submit } from '../actions.ts';
import { inBrowser, openStore } from '../store.ts';

inBrowser('a file is shown, its good rows are added, and the others named and saved', async (t) => {
  const store = await openStore(t, { plants: [] });
  const { page, errors } = store;
  await page.getByRole('button', { name: 'Import a file' }).click();
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
  assert.match(reasons[0] ?? '', /^line 3\s+The quotes do not match\./);
  assert.match(reasons[1] ?? '', /^line 4\s+"name" is empty\. Use a string of /);
  assert.match(reasons[2] ?? '', /^line 6\s+"name" is empty\. Use a string of /);

  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save refused rows' }).click();
  const file = await download;
  assert.equal(file.suggestedFilename(), 'plants-refused.csv');
  const saved = readFileSync(await file.path(), 'utf8');
  assert.match(saved, /^name,tag,id,line,reason\n"""Ficus;",,,3,"The quotes /);

  await page.getByRole('button', { name: 'Another file' }).click();
  await choose(page, 'pflanzen.csv', 'Pflanze\nFicus\n');
  await page
    .getByRole('alert')
    .getByText('The first line has unknown or repeated columns "Pflanze". It must have ')
    .waitFor();
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
