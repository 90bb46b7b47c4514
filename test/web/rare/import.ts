/**
 * Long imports on the page, those that something interrupts, and other ways to start one.
 */
import assert from 'node:assert/strict';
import { idOf } from '../../support/tokens.ts';
import { choose, done, namesOf, submit, toast, untilAdded } from '../actions.ts';
import { inBrowser, openStore } from '../store.ts';

inBrowser('works by keyboard alone, on a telephone in the dark', async (t) => {
  const context = { viewport: { width: 360, height: 740 }, colorScheme: 'dark' } as const;
  const { page } = await openStore(t, { plants: [], context });
  // The key can overtake the command that makes the browser report the chooser, so that command comes first.
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Import a file' }).press('Enter');
  await page.locator('#import-file:focus').waitFor();
  await page.keyboard.press('Enter');
  const text = 'name,tag\nA name that is not short,indoor\n,\n,indoor\n';
  const file = { name: 'plants.csv', mimeType: 'text/csv', buffer: Buffer.from(text) };
  await (await chooser).setFiles(file);
  await page.getByText('plants.csv: 2 rows').waitFor();
  await page.keyboard.press('Enter');
  await done(page, 'Added 1 plant; 1 row was refused.');
  const [scroll, client] = await page.evaluate<[number, number]>(
    '[document.querySelector("#import").scrollWidth, document.querySelector("#import").clientWidth]',
  );
  assert.ok(scroll <= client, 'nothing is cut off at the side');
  await page.keyboard.press('Enter');
  await page.locator('#import').waitFor({ state: 'hidden' });
});

inBrowser('stops although the service is away', async (t) => {
  const { page } = await openStore(t);
  await page.route('**/plants', (route) => route.abort());
  await choose(page, 'plants.csv', 'name\nAloe');
  await submit(page).click();
  await page.locator('#import .waiting').getByText('The service does not respond.').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await done(page, 'Not complete.'); // without a wait for the service
});

inBrowser('undoes an import that was stopped, which then cannot continue', async (t) => {
  const store = await openStore(t, { plants: [] });
  const { page } = store;
  const names = Array.from({ length: 1_000 }, (_, at) => `Plant ${at}`);
  await choose(page, 'plants.csv', ['name', ...names].join('\n'));
  await submit(page).click();
  await untilAdded(page, 20);
  await page.getByRole('button', { name: 'Stop' }).click();
  await done(page, 'Not complete.');
  const next = page.getByRole('button', { name: 'Continue' });
  await next.waitFor();
  await page.locator('#import').getByRole('button', { name: 'Undo' }).click();
  await done(page, 'Undid the import of');
  assert.equal(await next.isVisible(), false);
  assert.deepEqual(await namesOf(store), [], 'also what was in flight');
});

inBrowser(
  'continues with another token, and ends without a word with that of another user',
  async (t) => {
    for (const user of ['alice', 'bob']) {
      const store = await openStore(t, { plants: [] });
      const { page, app } = store;
      const names = Array.from({ length: 300 }, (_, at) => `Plant ${at}`);
      await choose(page, 'plants.csv', ['name', ...names].join('\n'));
      await submit(page).click();
      await untilAdded(page, 20);
      await app.storage.identity.revokeToken(idOf(store.token), Date.now());
      const token = await app.token(user);
      await page.locator('#renew-token').fill(token);
      await page.keyboard.press('Enter');
      if (user === 'alice') await done(page, 'Added');
      else await page.locator('#import').waitFor({ state: 'hidden' });
      await page.getByRole('button', { name: user, includeHidden: true }).waitFor();
      const expected = user === 'alice' ? names.toSorted() : [];
      assert.deepEqual((await namesOf({ ...store, token })).toSorted(), expected);
    }
  },
);

inBrowser('1,000 rows are added once, although the import is stopped half way', async (t) => {
  const rows = 1_000;
  const store = await openStore(t, { plants: [] });
  const { page } = store;
  const isWrong = (at: number) => at % (rows / 4) === 7;
  const lines = Array.from({ length: rows }, (_, at) => (isWrong(at) ? ',x' : `Plant ${at},a`));
  await choose(page, 'plants.csv', ['name,tag', ...lines].join('\n'));
  await submit(page).click();
  await untilAdded(page, rows / 4);
  await page.getByRole('button', { name: 'Stop' }).click();
  await done(page, 'Not complete.');
  await page
    .locator('#import-done')
    .getByText(/ rows? left\.$/)
    .waitFor();

  await page.getByRole('button', { name: 'Continue' }).click();
  await page.locator('#import-stop').waitFor();
  await page.keyboard.press('Escape');
  await toast(page, 'The import continues.').waitFor();
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  const bad = lines.keys().filter(isWrong).toArray();
  await done(page, `${bad.length} rows were refused.`);
  const named = await page.locator('#import-refusals td:first-child').allTextContents();
  assert.deepEqual(
    named,
    bad.map((at) => `line ${at + 2}`),
  );
  const good = lines.flatMap((_, at) => (isWrong(at) ? [] : [`Plant ${at}`]));
  assert.deepEqual((await namesOf(store)).toSorted(), good.toSorted());
});
