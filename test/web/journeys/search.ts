/**
 * Searching the table.
 */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { until } from '../../support/until.ts';
import { assertNames, holdResponse, press } from '../actions.ts';
import { inBrowser, openStore, shelfNames } from '../store.ts';

inBrowser(
  'searches names and tags while somebody types, and keeps the text in the address',
  async (t) => {
    const { page, errors } = await openStore(t);
    const box = page.getByRole('combobox', { name: 'Search names and tags' });
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

inBrowser('a tag that is chosen before a search begins takes its place', async (t) => {
  const { page } = await openStore(t);
  const { sent, release } = await holdResponse(page, '**/plants?*sort=name*');
  await page.getByRole('button', { name: 'Name', exact: true }).click();
  await sent;
  const box = page.getByRole('combobox', { name: 'Search names and tags' });
  await box.fill('her');
  await page.getByRole('option', { name: 'herbs' }).click();
  await release();
  await assertNames(page, ['Thymus vulgaris']);
  assert.equal(new URL(page.url()).hash, '#tag=herbs&sort=name');
  assert.equal(await box.inputValue(), '');
});

inBrowser('a tag below the search box becomes a filter, which is exact', async (t) => {
  const tags = ['Herbs', 'herbs', 'herbs', 'shrubs', 'öl', ''];
  const { page, app, token, errors } = await openStore(t, {
    plants: tags.map((tag, at) => ({ name: `Plant ${at + 1}`, tag })),
  });
  const box = page.getByRole('combobox', { name: 'Search names and tags' });
  const assertTags = async (...texts: string[]) => {
    const shown = () => page.getByRole('option').allTextContents();
    await until(`the tags are ${texts.join()}`, async () =>
      isDeepStrictEqual(await shown(), texts),
    );
  };
  const expanded = (state: boolean) =>
    page.locator(`#search-input[aria-expanded=${state}]`).waitFor();
  await box.pressSequentially('HER');
  await assertTags('Herbs1', 'herbs2'); // the number of plants
  await expanded(true);
  await assertNames(page, ['Plant 1', 'Plant 2', 'Plant 3']);
  await press(page, 'ArrowDown', 'ArrowDown');
  const active = await box.getAttribute('aria-activedescendant');
  await page.locator(`#${active}[aria-selected=true]`).getByText('herbs').waitFor();
  await press(page, 'Enter');
  await assertNames(page, ['Plant 2', 'Plant 3']);
  await page.locator('#filter-chip').getByText('herbs').waitFor();
  assert.deepEqual([await box.inputValue(), new URL(page.url()).hash], ['', '#tag=herbs']);
  const { json } = await app.call('GET', '/plants?tag=herbs&fields=name', { token });
  assert.deepEqual(json, [{ name: 'Plant 2' }, { name: 'Plant 3' }], 'what curl gets');
  await expanded(false);
  await page.locator('#search-input:focus').waitFor();

  await press(page, 'ArrowDown');
  await assertTags('Herbs', 'herbs', 'shrubs', 'öl'); // how many others there are is unknown
  await press(page, 'ArrowUp', 'Enter');
  await assertNames(page, ['Plant 5']);
  await box.fill('b');
  await assertTags('Herbs', 'herbs', 'shrubs');
  await press(page, 'Escape');
  await assertTags();
  assert.equal(await box.inputValue(), 'b');
  await box.click();
  await page.getByRole('option', { name: 'Herbs', exact: true }).click();
  await assertNames(page, ['Plant 1']);
  await page.locator('#search-input:focus').waitFor();
  await page.getByRole('button', { name: 'Remove the filter' }).click();
  await app.call('PATCH', '/plants/4', { token, json: { tag: 'herbs' } });
  await box.click();
  await assertTags('Herbs1', 'herbs3', 'öl1'); // no plant has the other one
  assert.deepEqual(errors, []);
});

inBrowser('the back button returns to what was there before a search', async (t) => {
  const { page } = await openStore(t);
  const box = page.getByRole('combobox', { name: 'Search names and tags' });
  await page.getByRole('button', { name: 'Show only the tag indoor' }).first().click();
  await assertNames(page, ['Monstera deliciosa', 'Ficus lyrata']);
  await box.pressSequentially('fic');
  await assertNames(page, ['Ficus lyrata']);
  await page.goBack();
  await assertNames(page, ['Monstera deliciosa', 'Ficus lyrata']);
  assert.equal(await box.inputValue(), '');
  await page.goBack();
  await assertNames(page, shelfNames);
  await page.goForward();
  await page.goForward();
  await assertNames(page, ['Ficus lyrata']);
  assert.equal(await box.inputValue(), 'fic');
});

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
  const box = page.getByRole('combobox', { name: 'Search names and tags' });
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
