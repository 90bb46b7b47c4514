/**
 * What others do moves nothing that one looks at, selects or edits.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { openPage } from '../../support/browser.ts';
import { until } from '../../support/until.ts';
import { press, promisedMs } from '../actions.ts';
import { browser, countOn, inBrowser, openStore, type OpenStore } from '../store.ts';

/** The page of bob, another manager, in a browser of his own. */
async function openAsBob(t: TestContext, { app }: OpenStore): Promise<Page> {
  const token = await app.token('bob', { role: 'manager' });
  const { page } = await openPage(await browser(), `${app.address}/#token=${token}`);
  t.after(() => page.context().close());
  await page.locator('#rows .row').first().waitFor();
  return page;
}

/** Adds a plant with this id on the page. */
async function add(page: Page, name: string, id: number): Promise<void> {
  await page.getByRole('button', { name: 'Add plant' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill(name);
  const idField = page.getByRole('textbox', { name: 'Id optional' });
  if (!(await idField.isVisible())) await page.getByText('Choose the id yourself').click();
  await idField.fill(String(id));
  await press(page, 'Enter');
  await page.locator('#add-done').getByText(`Added “${name}”`).waitFor();
  await press(page, 'Escape');
}

/** Where the user of the page sees these things, and what they type. */
async function viewOf(page: Page, names: readonly string[]) {
  const rows = names.map((name) => page.locator('#rows .row').filter({ hasText: name }));
  const boxes = [...rows, page.locator('#edit')].map((each) => each.boundingBox());
  return {
    boxes: await Promise.all(boxes),
    active: await page.locator('#rows .active .name').innerText(),
    selected: await page.locator('#rows [aria-selected=true] .name').allInnerTexts(),
    typed: await page.evaluate(
      '[document.activeElement.id, document.activeElement.value, document.activeElement.selectionStart]',
    ),
  };
}

/** The plants that the tests of positions need: with others above and below. */
const ivies = Array.from({ length: 200 }, (_, at) => {
  const id = (at + 1) * 10;
  return { id, name: `Ivy ${id}.`, tag: '' };
});

inBrowser('what is added in one browser appears in another, and moves nothing', async (t) => {
  const store = await openStore(t, { plants: [], context: {} });
  const { app, page, errors } = store;
  await app.database.fill(ivies);
  await page.reload();
  await countOn(page, '200 plants').waitFor();
  const bob = await openAsBob(t, store);
  await page.evaluate(`document.querySelector('#grid').scrollTop = 100 * 44 + 7`);
  await page.getByRole('checkbox', { name: 'Select Ivy 1030.' }).click();
  await page.getByRole('checkbox', { name: 'Select Ivy 1050.' }).click({ modifiers: ['Shift'] });
  await page.getByRole('button', { name: 'Edit Ivy 1070.' }).click();
  await page.locator('#edit-name').fill('Typed');
  await press(page, 'ArrowLeft');
  const names = ['Ivy 1030.', 'Ivy 1060.', 'Ivy 1090.'];
  const before = await viewOf(page, names);
  assert.deepEqual(before.typed, ['edit-name', 'Typed', 4]);

  await add(bob, 'Above', 5);
  await countOn(page, '201 plants').waitFor({ timeout: promisedMs });
  assert.deepEqual(await viewOf(page, names), before);
  await add(bob, 'Below', 5_000);
  await countOn(page, '202 plants').waitFor({ timeout: promisedMs });
  const ofBob = await app.token('bob');
  for (const id of [10, 20, 30]) await app.call('DELETE', `/plants/${id}`, { token: ofBob });
  await countOn(page, '199 plants').waitFor({ timeout: promisedMs });
  assert.deepEqual(await viewOf(page, names), before);

  const [start] = before.boxes;
  await page.mouse.move(300, 300);
  for (let steps = 0; steps < 10; steps++) {
    await page.mouse.wheel(0, 10);
    await app.call('POST', '/plants', { token: ofBob, json: { name: 'Moss', id: 11 + steps } });
  }
  await countOn(page, '209 plants').waitFor({ timeout: promisedMs });
  await until('the wheel has moved the rows as far as it was turned', async () => {
    const { boxes } = await viewOf(page, names);
    return boxes[0]?.y === (start?.y ?? 0) - 100;
  });

  await page.locator('#edit-name').focus();
  await press(page, 'Enter');
  await page.locator('#rows').getByText('Typed').waitFor();
  await page.getByRole('checkbox', { name: 'Select Ivy 1090.' }).click({ modifiers: ['Shift'] });
  await page.getByText('7 plants selected').waitFor();
  await page.locator('#grid').focus();
  await press(page, 'Home');
  await page.locator('#rows').getByText('Above').waitFor();
  assert.deepEqual(errors, []);
});

/** How a row is in use: a step that makes it so, and one that ends it. */
const uses = {
  look: { begin: async () => {}, end: async () => {} },
  point: {
    begin: async (page: Page, name: string) => page.locator('#rows').getByText(name).hover(),
    end: async (page: Page) => page.mouse.move(0, 0),
  },
  select: {
    begin: async (page: Page, name: string) => {
      await page.getByRole('checkbox', { name: `Select ${name}` }).click();
      await page.mouse.move(0, 0);
    },
    end: async (page: Page) => press(page, 'Escape'),
  },
  edit: {
    begin: async (page: Page, name: string) => {
      await page.getByRole('button', { name: `Edit ${name}` }).click();
      await page.mouse.move(0, 0);
      await page.locator('#edit-name').fill('Typed');
    },
    end: async (page: Page) => press(page, 'Escape'),
  },
};

inBrowser('the row in use stays where it is, and without one the first visible row', async (t) => {
  const { app, page } = await openStore(t, { plants: [], context: {} });
  await app.database.fill(ivies);
  await page.reload();
  const bob = { token: await app.token('bob', { role: 'manager' }) };
  const countIs = (count: number) =>
    page.locator(`#grid[aria-rowcount="${count + 1}"]`).waitFor({ timeout: promisedMs });
  const check = async (use: keyof typeof uses, first: number) => {
    const used = ivies[use === 'look' ? first : first + 4];
    assert.ok(used);
    const { id, name } = used;
    await uses[use].begin(page, name);
    const row = page.locator('#rows .row').filter({ hasText: name });
    const places = () => Promise.all([row.boundingBox(), page.locator('#edit').boundingBox()]);
    const before = await places();
    const isSame = async (what: string) =>
      assert.deepEqual(await places(), before, `${use} ${what}`);
    const added = [1, id - 5]; // the last one is visible, unless the row is the first visible one
    for (const each of added)
      await app.call('POST', '/plants', { ...bob, json: { id: each, name: 'Moss' } });
    await countIs(202);
    await isSame('after two rows were added');
    await app.call('PATCH', `/plants/${id - 10 || 20}`, { ...bob, json: { name: 'Fern' } });
    for (const each of added) await app.call('DELETE', `/plants/${each}`, bob);
    await countIs(200);
    await isSame('after one was renamed, and two deleted');
    await uses[use].end(page);
  };
  for (const [width, rowPx] of [
    [1280, 44],
    [360, 64],
  ] as const) {
    await page.setViewportSize({ width, height: 740 });
    for (const scrollTop of [0, 440]) {
      await page.evaluate(`document.querySelector('#grid').scrollTop = ${scrollTop}`);
      await page.locator('#rows .row').first().waitFor();
      const first = Math.floor(scrollTop / rowPx);
      for (const use of ['look', 'point', 'select', 'edit'] as const) await check(use, first);
    }
  }
});
