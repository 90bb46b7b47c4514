/**
 * Searching the table.
 */
import assert from 'node:assert/strict';
import { assertNames, press } from '../actions.ts';
import { inBrowser, openStore, shelfNames } from '../store.ts';

inBrowser(
  'searches names and tags while somebody types, and keeps the text in the address',
  async (t) => {
    const { page, errors } = await openStore(t);
    const box = page.getByRole('searchbox', { name: 'Search names and tags' });
    await box.pressSequentially('DELIC');
    await assertNames(page, ['Monstera deliciosa']);
    await page.locator('#live').getByText('1 plant').waitFor();
    await page.locator('#search-input:focus').waitFor();
    await box.fill('indoor');
    await assertNames(page, ['Monstera deliciosa', 'Ficus lyrata']);
    assert.equal(new URL(page.url()).hash, '#q=indoor');
    await page.reload();
    await assertNames(page, ['Monstera deliciosa', 'Ficus lyrata']);
    assert.equal(await box.inputValue(), 'indoor');
    await box.fill(' ');
    await assertNames(page, shelfNames);

    await box.fill('e');
    await page.getByRole('button', { name: 'Show only the tag indoor' }).first().click();
    await assertNames(page, ['Monstera deliciosa']);
    await box.fill('rose');
    await page
      .getByRole('heading', { name: 'No plants with the tag “indoor” containing “rose”' })
      .waitFor();
    await page.getByRole('button', { name: 'Show all plants' }).click();
    await assertNames(page, shelfNames);
    assert.equal(await box.inputValue(), '');
    await page.goBack();
    await page.getByRole('heading', { name: 'No plants with the tag' }).waitFor();
    assert.equal(await box.inputValue(), 'rose');
    await box.fill('');
    await assertNames(page, ['Monstera deliciosa', 'Ficus lyrata']);
    await page.getByRole('button', { name: 'Remove the filter' }).click();
    await assertNames(page, shelfNames);
    await box.fill('aloe');
    await assertNames(page, ['Aloe vera']);
    await page.getByRole('button', { name: 'Add plant' }).click();
    for (const name of ['Ivy', 'Aloe ferox']) {
      await page.locator('#add-name').fill(name);
      await press(page, 'Enter');
      await page.locator('#add-done').getByText(`Added “${name}”`).waitFor();
    }
    await assertNames(page, ['Aloe vera', 'Aloe ferox']); // what contains the text
    assert.deepEqual(errors, []);
  },
);

inBrowser('one search at a time: the next one is for the newest text', async (t) => {
  const { page } = await openStore(t);
  const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>();
  const searched: (string | null)[] = [];
  let inFlight = 0;
  await page.route('**/plants?*', async (route) => {
    searched.push(new URL(route.request().url()).searchParams.get('q'));
    assert.equal(++inFlight, 1);
    await mayAnswer;
    const response = await route.fetch();
    inFlight--;
    await route.fulfill({ response });
  });
  const first = page.waitForRequest('**/plants?*');
  await page.locator('#search-input').focus();
  await press(page, 'a');
  await first;
  await press(page, 'l', 'o', 'e');
  assert.deepEqual(searched, ['a']);
  await assertNames(page, shelfNames); // until the answer is there
  answer();
  await page.locator('#live').getByText('1 plant', { exact: true }).waitFor();
  await assertNames(page, ['Aloe vera']);
  assert.deepEqual([...new Set(searched)], ['a', 'aloe']);
});

inBrowser('a view that opens during a search takes its text out of the box', async (t) => {
  const { page } = await openStore(t);
  const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>();
  await page.route('**/plants?*q=aloe*', async (route) => {
    await mayAnswer;
    await route.continue();
  });
  const box = page.getByRole('searchbox', { name: 'Search names and tags' });
  const searched = page.waitForRequest('**/plants?*q=aloe*');
  await box.fill('aloe');
  await searched;
  await page.evaluate("location.hash = 'tag=indoor'");
  await assertNames(page, ['Monstera deliciosa', 'Ficus lyrata']);
  assert.equal(await box.inputValue(), '');
  const answered = page.waitForResponse('**/plants?*q=aloe*');
  answer();
  await answered;
  await assertNames(page, ['Monstera deliciosa', 'Ficus lyrata']);
});
