/**
 * Importing a file on the page.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { violations } from '../support/accessibility.ts';
import { withoutBrowser } from '../support/browser.ts';
import { idOf } from '../support/tokens.ts';
import { choose, done, importInterrupted, submit, untilAdded } from './import.ts';
import { browserOfFile, namesOf, openStore, press, pressAtOnce, toast } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

it(
  'a file is shown, its good rows are added, and the others named and saved',
  { skip },
  async (t) => {
    const store = await openStore(t, browser(), { plants: [] });
    const { page, errors } = store;
    await page.getByRole('button', { name: 'Import a file' }).click();
    assert.deepEqual(await violations(page), []);
    await choose(page, 'plants.csv', 'Name;Tag\nMonstera;indoor\n"Ficus;\n;herbs\nAloe;\n;x\n');
    await page.getByText('plants.csv: 5 rows').waitFor();
    assert.deepEqual(await page.locator('#import-rows tr:first-child td').allTextContents(), [
      '2',
      'Monstera',
      'indoor',
      '',
    ]);
    assert.deepEqual(await violations(page), []);
    await submit(page).press('Enter');
    await done(page, 'Added 2 plants; 3 rows were refused.');
    assert.deepEqual(await violations(page), []);
    const reasons = await page.locator('#import-refusals tr').allInnerTexts();
    assert.match(reasons[0] ?? '', /^3\s+The quotes do not match\./);
    assert.match(reasons[1] ?? '', /^4\s+"name" is empty; it must be /);
    assert.match(reasons[2] ?? '', /^6\s+"name" is empty; it must be /);

    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save refused rows' }).click();
    const file = await download;
    assert.equal(file.suggestedFilename(), 'plants-refused.csv');
    const saved = readFileSync(await file.path(), 'utf8');
    assert.match(saved, /^name,tag,id,line,reason\n"""Ficus;",,,3,"The quotes /);

    // The fixed file adds only the fixed rows.
    await page.getByRole('button', { name: 'Another file' }).click();
    await choose(page, 'plants.csv', 'Name;Tag\nMonstera;indoor\nFicus;\nThyme;herbs\nAloe;\n');
    assert.ok(await page.getByLabel('Skip the rows').isChecked());
    await submit(page).click();
    await done(page, 'Added 2 plants; 2 were already added.');
    await page.locator('#import-hide').click();
    await page.locator('#rows').getByText('Thyme').waitFor();
    assert.deepEqual((await namesOf(store)).toSorted(), ['Aloe', 'Ficus', 'Monstera', 'Thyme']);
    // The browser reports each refusal.
    assert.deepEqual(
      errors.filter((error) => !/status of 400/.test(error)),
      [],
    );
  },
);

it('columns of other names can be chosen, and rows be added again', { skip }, async (t) => {
  const store = await openStore(t, browser(), { plants: [] });
  const { page } = store;
  const text = 'Notes,Pflanze,Ort\nx,Monstera,Bad\n';
  for (const expected of ['Added 1 plant.', 'Added 1 plant.']) {
    await choose(page, 'pflanzen.csv', text);
    await page.locator('#import-name').selectOption('Pflanze');
    await page.locator('#import-tag').selectOption('Ort');
    const skipRows = page.getByLabel('Skip the rows');
    if (await skipRows.isVisible()) await skipRows.uncheck();
    await submit(page).click();
    await done(page, expected);
    await page.getByRole('button', { name: 'Another file' }).click();
  }
  assert.deepEqual(await namesOf(store), ['Monstera', 'Monstera']);
});

it('imports nothing before the column of the names is chosen', { skip }, async (t) => {
  const store = await openStore(t, browser(), { plants: [] });
  const { page } = store;
  await choose(page, 'pflanzen.csv', 'Id,Pflanze\n10000,Monstera\n10001,Ficus\n');
  await page.locator('#import-name:focus').waitFor();
  await page.getByText('Choose the column that has the names.').waitFor();
  assert.ok(await submit(page).isDisabled());
  assert.deepEqual(await violations(page), []);
  await press(page, 'Enter', 'Escape');
  assert.deepEqual(await namesOf(store), []);
  await choose(page, 'pflanzen.csv', 'Id,Pflanze\n10000,Monstera\n10001,Ficus\n');
  await page.locator('#import-name').selectOption('Pflanze');
  await page.getByText('Choose the column that has the names.').waitFor({ state: 'hidden' });
  await submit(page).click();
  await done(page, 'Added 2 plants.');
  assert.deepEqual(await namesOf(store), ['Monstera', 'Ficus']);
});

it('rows can be pasted, and a file can be dropped anywhere', { skip }, async (t) => {
  const store = await openStore(t, browser());
  const { page, errors } = store;
  const dataTransfer = await page.evaluateHandle(`
    const data = new DataTransfer();
    data.items.add(new File(['[{"name":"Dropped"}]'], 'plants.json'));
    data`);
  await page.dispatchEvent('body', 'dragover', { dataTransfer });
  await page.getByText('Drop the file').waitFor();
  await page.dispatchEvent('body', 'drop', { dataTransfer });
  await page.getByText('plants.json: 1 row').waitFor();
  await submit(page).click();
  await done(page, 'Added 1 plant.');
  await page.getByRole('button', { name: 'Another file' }).click();
  const text = page.getByLabel('Or paste rows');
  await text.fill('nothing');
  await page.locator('#import-read').click();
  await page.getByText('pasted rows: 0 rows').waitFor();
  await page.locator('#import-back').click();
  await text.fill('');
  await page.locator('#import-read').click();
  await page.getByRole('alert').getByText('The file is empty.').waitFor();
  await text.fill('name\tid\nPasted\t90');
  await page.locator('#import-read').click();
  await submit(page).click();
  await done(page, 'Added 1 plant.');
  const names = await namesOf(store);
  assert.deepEqual(names.slice(-2), ['Dropped', 'Pasted']);
  assert.deepEqual(errors, []);
});

it('works by keyboard alone, on a telephone in the dark', { skip }, async (t) => {
  const context = { viewport: { width: 360, height: 740 }, colorScheme: 'dark' } as const;
  const { page } = await openStore(t, browser(), { plants: [], context });
  // The key can overtake the command that makes the browser report the chooser, so that command comes first.
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import a file' }).press('Enter');
  await page.locator('#import-file:focus').waitFor();
  await page.keyboard.press('Enter');
  const text = 'name,tag\nA name that is not short,indoor\n,\n,indoor\n';
  const file = { name: 'plants.csv', mimeType: 'text/csv', buffer: Buffer.from(text) };
  await (await chooser).setFiles(file);
  await page.getByText('plants.csv: 2 rows').waitFor();
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('Enter');
  await done(page, 'Added 1 plant; 1 row was refused.');
  assert.deepEqual(await violations(page), []);
  const [scroll, client] = await page.evaluate<[number, number]>(
    '[document.querySelector("#import").scrollWidth, document.querySelector("#import").clientWidth]',
  );
  assert.ok(scroll <= client, 'nothing is cut off at the side');
  await page.keyboard.press('Enter');
  await page.locator('#import').waitFor({ state: 'hidden' });
});

it(
  'shows the progress in the dialog or in one message, however fast both change',
  { skip },
  async (t) => {
    const { page } = await openStore(t, browser());
    await page.route('**/plants?*', (route) => route.abort());
    await choose(page, 'plants.csv', 'name\nAloe');
    await submit(page).click();
    await page.locator('#import-stop').waitFor();
    const messages = toast(page, 'Importing plants.csv');
    await pressAtOnce(page, '#import-hide', '#import-open');
    assert.equal(await messages.count(), 0);
    await pressAtOnce(page, '#import-hide', '#import-open', '#import-hide');
    assert.equal(await messages.count(), 1);
  },
);

it('signing out deletes what the browser stores of this user only', { skip }, async (t) => {
  const store = await openStore(t, browser(), { plants: [] });
  const { page, app } = store;
  const lines = Array.from({ length: 400 }, (_, at) => `Plant ${at}`).join('\n');
  await choose(page, 'plants.csv', `name\n${lines}`);
  await submit(page).click();
  await untilAdded(page, 20);
  await page.getByRole('button', { name: 'Stop' }).click();
  const bob = await app.token('bob');
  const other = await page.context().newPage();
  await other.goto(`${app.address}/#token=${bob}`);
  await other.getByRole('button', { name: 'bob' }).click();
  await other.getByRole('button', { name: 'Sign out' }).click();
  await other.getByRole('heading', { name: 'Open your store' }).waitFor();
  const text = 'The import of plants.csv is not complete.';
  await page.reload();
  await toast(page, text).waitFor();
  await page.getByRole('button', { name: 'alice' }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Open your store' }).waitFor();
  const stored = `new Promise((resolve) => {
    const opening = indexedDB.open('plant-store-imports');
    opening.onsuccess = () => {
      const { result } = opening;
      const stores = [...result.objectStoreNames];
      const transaction = result.transaction(stores);
      const counts = stores.map((name) => transaction.objectStore(name).count());
      transaction.oncomplete = () => resolve(counts.map((count) => count.result));
    };
  })`;
  assert.deepEqual(await page.evaluate(stored), [0, 0]);
});

it('continues with another token after the first was revoked', { skip }, async (t) => {
  const store = await openStore(t, browser(), { plants: [] });
  const { page, app } = store;
  const lines = Array.from({ length: 200 }, (_, at) => `Plant ${at}`);
  await choose(page, 'plants.csv', ['name', ...lines].join('\n'));
  await submit(page).click();
  await untilAdded(page, 20);
  await app.storage.revokeToken(idOf(store.token), Date.now());
  await page.getByRole('heading', { name: 'Your token no longer works' }).waitFor();
  const token = await app.token('alice');
  await page.locator('#renew-token').fill(token);
  await page.keyboard.press('Enter');
  await done(page, 'Added');
  assert.deepEqual((await namesOf({ ...store, token })).toSorted(), lines.toSorted());
});

it('ends without a word if the next token is of another user', { skip }, async (t) => {
  const store = await openStore(t, browser(), { plants: [] });
  const { page, app } = store;
  const lines = Array.from({ length: 400 }, (_, at) => `Plant ${at}`);
  await choose(page, 'plants.csv', ['name', ...lines].join('\n'));
  await submit(page).click();
  await untilAdded(page, 50);
  await app.storage.revokeToken(idOf(store.token), Date.now());
  const token = await app.token('bob');
  await page.locator('#renew-token').fill(token);
  await page.keyboard.press('Enter');
  await page.locator('#import').waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'bob' }).waitFor();
  assert.deepEqual(await namesOf({ ...store, token }), []);
});

it('600 rows are added once, although the page is closed half way', { skip }, (t) =>
  importInterrupted(t, browser(), 600),
);
