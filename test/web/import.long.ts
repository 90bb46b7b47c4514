/**
 * Long imports on the page, those that something interrupts, and other ways to start one.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { violations } from '../support/accessibility.ts';
import { withoutBrowser } from '../support/browser.ts';
import { idOf } from '../support/tokens.ts';
import { choose, done, importInterrupted, submit, untilAdded } from './import.ts';
import { browserOfFile, namesOf, openStore } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

it('a file that is chosen again adds its rows again', { skip }, async (t) => {
  const store = await openStore(t, browser(), { plants: [] });
  const { page } = store;
  for (const expected of ['Added 1 plant.', 'Added 1 plant.']) {
    await choose(page, 'plants.csv', 'Name\nMonstera\n');
    await submit(page).click();
    await done(page, expected);
    await page.getByRole('button', { name: 'Another file' }).click();
  }
  assert.deepEqual(await namesOf(store), ['Monstera', 'Monstera']);
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

it('stops although the service is away', { skip }, async (t) => {
  const { page } = await openStore(t, browser());
  await page.route('**/plants', (route) => route.abort());
  await choose(page, 'plants.csv', 'name\nAloe');
  await submit(page).click();
  await page.locator('#import .waiting').getByText('The service does not respond.').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await done(page, 'Not complete.'); // without a wait for the service
});

it('ends without a word if the next token is of another user', { skip }, async (t) => {
  const store = await openStore(t, browser(), { plants: [] });
  const { page, app } = store;
  const lines = Array.from({ length: 400 }, (_, at) => `Plant ${at}`);
  await choose(page, 'plants.csv', ['name', ...lines].join('\n'));
  await submit(page).click();
  await untilAdded(page, 50);
  await app.storage.identity.revokeToken(idOf(store.token), Date.now());
  const token = await app.token('bob');
  await page.locator('#renew-token').fill(token);
  await page.keyboard.press('Enter');
  await page.locator('#import').waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'bob' }).waitFor();
  assert.deepEqual(await namesOf({ ...store, token }), []);
});

it('3,000 rows are added once, although the import is stopped half way', { skip }, (t) =>
  importInterrupted(t, browser(), 3_000),
);
