/**
 * Sorting, counting, selecting, and changing many plants at once.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { assertNames, deleteChosen, holdResponse, press, promisedMs, toast } from '../actions.ts';
import { countOn, inBrowser, openStore, type OpenStore } from '../store.ts';

/** A store whose first plants are 300 ivies in two beds, by turns, and the others ferns. */
async function openIvies(t: TestContext, count: number): Promise<OpenStore> {
  const store = await openStore(t, { plants: [], context: {} });
  const plants = Array.from({ length: count }, (_, at) => {
    const id = at + 1;
    return { id, name: `${at < 300 ? 'Ivy' : 'Fern'} ${id}`, tag: `bed ${1 + (at % 2)}` };
  });
  await store.app.database.fill(plants);
  await store.page.reload();
  return store;
}

const row = (page: Page, name: string) => page.locator('#rows .row').filter({ hasText: name });
const selected = (page: Page, count: number) =>
  page.getByText(`${count} plants selected`, { exact: true }).waitFor();

/** The number of plants with this tag. */
async function tagged({ app, token }: OpenStore, tag: string): Promise<string | null> {
  const path = `/plants?limit=1&count=true&tag=${tag}`;
  return (await app.call('GET', path, { token })).headers.get('total-count');
}

inBrowser('sorts by name, where others see their plants come and go too', async (t) => {
  const { page, app } = await openStore(t, {
    plants: ['Zinnia', 'élan', 'Aloe', 'Fern'].map((name) => ({ name })),
  });
  const [head, name] = [page.getByRole('columnheader'), page.locator('#sort-name')];
  const sorted = () => head.evaluateAll((all) => all.map((each) => each.getAttribute('aria-sort')));
  assert.deepEqual((await sorted()).slice(1, 3), ['ascending', null]);
  await name.click();
  await assertNames(page, ['Aloe', 'élan', 'Fern', 'Zinnia']);
  assert.deepEqual((await sorted()).slice(1, 3), [null, 'ascending']);
  const token = await app.token('bob', { role: 'manager' });
  await app.call('POST', '/plants', { token, json: { name: 'Daisy' } });
  await app.call('PATCH', '/plants/3', { token, json: { name: 'Yarrow' } });
  await assertNames(page, ['Daisy', 'élan', 'Fern', 'Yarrow', 'Zinnia']);
  await page.locator('#grid').focus();
  await press(page, 'Home', 'ArrowUp', 'ArrowLeft', 'ArrowRight', 'Enter', 'ArrowDown');
  await page.locator('#grid:focus').waitFor();
  await assertNames(page, ['Zinnia', 'Yarrow', 'Fern', 'élan', 'Daisy']);
  assert.deepEqual((await sorted()).slice(1, 3), [null, 'descending']);
  await page.reload();
  await assertNames(page, ['Zinnia', 'Yarrow', 'Fern', 'élan', 'Daisy']);
  await page.locator('#sort-id').click();
  await assertNames(page, ['Zinnia', 'élan', 'Yarrow', 'Fern', 'Daisy']);
  await page.goBack();
  await assertNames(page, ['Zinnia', 'Yarrow', 'Fern', 'élan', 'Daisy']);
});

inBrowser('counts all plants before they are read, and End goes to the last one', async (t) => {
  const { app, page } = await openIvies(t, 2_000);
  let pages = 0;
  page.on('request', (request) => (pages += Number(request.url().includes('&after='))));
  await countOn(page, '2,000 plants').waitFor();
  await page.locator('#grid[aria-rowcount="2001"]').waitFor();
  const token = await app.token('bob', { role: 'manager' });
  await app.call('DELETE', '/plants/1999', { token });
  await countOn(page, '1,999 plants').waitFor({ timeout: promisedMs });
  await page.locator('#grid').focus();
  await press(page, 'End');
  await page.locator('#rows .active').getByText('Fern 2000').waitFor();
  assert.ok((await page.locator('#rows .row').count()) < 60);
  assert.ok(pages < 3, 'after the first one, which is small, pages are large');
  await countOn(page, '1,999 plants').waitFor();
  await press(page, 'Home');
  await page.locator('#rows .active').getByText('Ivy 1', { exact: true }).waitFor();
});

inBrowser('selects rows, ranges, what was read, or all that match', async (t) => {
  const { page } = await openIvies(t, 1_500);
  await row(page, 'Ivy 2')
    .first()
    .click({ modifiers: ['ControlOrMeta'] });
  await row(page, 'Ivy 5').click({ modifiers: ['Shift'] });
  await selected(page, 4);
  await row(page, 'Ivy 3').click({ modifiers: ['ControlOrMeta'] });
  await selected(page, 3);
  const all = page.getByRole('checkbox', { name: 'Select all rows' });
  assert.equal(await all.evaluate((box) => Reflect.get(box, 'indeterminate')), true);
  await press(page, 'Escape', 'ControlOrMeta+a');
  await page.getByText(/^(?:250|1,250) plants selected$/).waitFor();
  await page.getByRole('button', { name: 'Select all 1,500' }).click();
  await page.getByText('1,500 plants selected', { exact: true }).waitFor();
  assert.equal(await all.isChecked(), true);
  await all.click();
  await page.locator('#selection').waitFor({ state: 'hidden' });

  await page.locator('#search-input').fill('ivy');
  await countOn(page, '300 plants').waitFor();
  await row(page, 'Ivy 1')
    .first()
    .click({ modifiers: ['Shift'] });
  await page.getByRole('button', { name: 'Select all 300 that match' }).click();
  await selected(page, 300);
  await page.locator('#selection-all').waitFor({ state: 'hidden' });
});

inBrowser('tags 300 plants, and gives all of them back their tags', async (t) => {
  const store = await openIvies(t, 400);
  const { page, app, errors } = store;
  await page.locator('#search-input').fill('ivy');
  await countOn(page, '300 plants').waitFor();
  await page.locator('#grid[aria-rowcount="301"]').waitFor();
  await page.locator('#select-all').click();
  await selected(page, 300);
  await page.getByRole('button', { name: 'Tag', exact: true }).click();
  await page.getByRole('dialog', { name: 'Tag 300 plants' }).waitFor();
  await page.locator('#retag-tag').fill('hall');
  await press(page, 'Enter');
  await toast(page, 'Tagged 300 plants “hall”.').waitFor({ timeout: 60_000 });
  assert.equal(await tagged(store, 'hall'), '300');
  await selected(page, 300);
  const token = await app.token('bob', { role: 'manager' });
  await app.call('PATCH', '/plants/7', { token, json: { name: 'Rose' } });
  await page.getByRole('button', { name: 'Undo' }).dblclick();
  await toast(page, '299 plants got back the tags from before.').waitFor({ timeout: 60_000 });
  await toast(page, '1 plant could not be tagged. Somebody has changed it since.').waitFor();
  assert.deepEqual(await Promise.all(['hall', 'bed 1', 'bed 2'].map((tag) => tagged(store, tag))), [
    '1',
    '199',
    '200',
  ]);
  assert.deepEqual(
    errors.filter((error) => !error.includes('status of 412')),
    [],
  );
});

inBrowser(
  'what is done with many plants can be stopped, and the rest stays as it was',
  async (t) => {
    const store = await openIvies(t, 40);
    const { page, app, token } = store;
    await page.getByRole('checkbox', { name: 'Select all rows' }).click();
    const sent = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<void>();
    await page.route('**/plants/*', async (route) => {
      sent.resolve();
      await stopped.promise;
      await route.continue();
    });
    await deleteChosen(page);
    await sent.promise;
    await page.getByRole('button', { name: 'Stop' }).click();
    stopped.resolve();
    await toast(page, /^Stopped: \d+ plants stay as they are\.$/).waitFor();
    const { json } = await app.call('GET', '/plants?fields=id', { token });
    const left = (json as unknown[]).length; // the route has no other answer
    assert.ok(left > 0 && left < 40, `${left} are left`);
    await toast(page, `Stopped: ${left} plants`).waitFor();
    await countOn(page, `${left} plants`).waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await countOn(page, '40 plants').waitFor();
  },
);

inBrowser('signing out stops what is done with many plants, and does not ask', async (t) => {
  const { page } = await openIvies(t, 40);
  await page.getByRole('checkbox', { name: 'Select all rows' }).click();
  const { sent } = await holdResponse(page, '**/plants/1');
  await deleteChosen(page);
  await sent;
  const questions: string[] = [];
  page.on('dialog', (dialog) => {
    questions.push(dialog.type());
    void dialog.accept();
  });
  await page.locator('#who').click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Open your store' }).waitFor();
  assert.deepEqual(questions, []);
});
