/**
 * Labels on paper.
 */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { withoutBrowser } from '../../support/browser.ts';
import { pagesOf, type Paper } from '../../support/print.ts';
import { without } from '../../support/programs.ts';
import { countOn, openStore, shelf, type OpenStore } from '../store.ts';

function inPrint(name: string, run: (t: TestContext) => Promise<void>): void {
  it(name, { skip: withoutBrowser || without('pdftoppm') }, run);
}

interface Sheet {
  columns: number;
  rows: number;
  /** Where the first label is, in millimeters. */
  first: { x: number; y: number; width: number; height: number };
  /** From a label to the next ones. */
  right: number;
  down: number;
}

/** By their names in the dialog. The measures are those of the makers. */
const sheets: Record<string, Sheet> = {
  'Avery L7160: 21 on A4': {
    columns: 3,
    rows: 7,
    first: { x: 7.21, y: 15.15, width: 63.5, height: 38.1 },
    right: 66.04,
    down: 38.1,
  },
  'Avery L7651: 65 on A4': {
    columns: 5,
    rows: 13,
    first: { x: 4.67, y: 10.7, width: 38.1, height: 21.2 },
    right: 40.64,
    down: 21.2,
  },
  'Avery 5160: 30 on Letter': {
    columns: 3,
    rows: 10,
    first: { x: 4.76, y: 12.7, width: 66.7, height: 25.4 },
    right: 69.85,
    down: 25.4,
  },
  'Label printer: 62 × 29 mm': {
    columns: 1,
    rows: 1,
    first: { x: 0, y: 0, width: 62, height: 29 },
    right: 0,
    down: 0,
  },
};

async function printed(page: Page): Promise<Paper[]> {
  return pagesOf(await page.pdf({ preferCSSPageSize: true }));
}

/** What the QR codes of all labels say, row by row. */
function codesOn(pages: readonly Paper[], name: string): (string | undefined)[] {
  const sheet = sheets[name];
  assert.ok(sheet);
  const { columns, rows, first, right, down } = sheet;
  const areas = Array.from({ length: columns * rows }, (_, at) => ({
    ...first,
    x: first.x + (at % columns) * right,
    y: first.y + Math.floor(at / columns) * down,
  }));
  return pages.flatMap((page) => areas.map((area) => page.qrCode(area)));
}

function addressesOf({ app }: OpenStore, ids: readonly number[]): string[] {
  return ids.map((id) => `${app.address}/#plant=${id}`);
}

inPrint('the selected plants are printed on a sheet that was begun', async (t) => {
  const store = await openStore(t);
  const { page, errors } = store;
  await page.getByRole('checkbox', { name: 'Select Ficus' }).click();
  await page.getByRole('checkbox', { name: 'Select Aloe' }).click();
  await page.getByRole('button', { name: 'Print labels' }).click();
  await page.getByText('2 labels on 1 page.').waitFor();
  await page.getByText('works only on this computer').waitFor();
  await page.getByLabel('Sheet', { exact: true }).selectOption('Avery 5160: 30 on Letter');
  await page.getByLabel('First free label').fill('31');
  await page.getByRole('button', { name: 'Print', exact: true }).click();
  await page.getByText('Count the labels of the sheet row by row, from 1.').waitFor();
  await page.getByLabel('First free label').fill('5');
  await page.evaluate("window.print = () => (document.title = 'printed')");
  await page.getByRole('button', { name: 'Print', exact: true }).click();
  assert.equal(await page.title(), 'printed');
  const pages = await printed(page);
  assert.deepEqual(
    pages.map(({ widthMm, heightMm }) => [widthMm.toFixed(), heightMm.toFixed()]),
    [['216', '279']],
  );
  const codes = codesOn(pages, 'Avery 5160: 30 on Letter');
  assert.deepEqual(codes.slice(4, 6), addressesOf(store, [2, 4]));
  assert.deepEqual(codes.filter((code) => code !== undefined).length, 2);
  for (const box of await page.locator('#labels-parts input').all()) await box.uncheck();
  assert.ok((await printed(page)).every((paper) => paper.isBlank));
  await page.goto(codes[4] ?? '');
  await page.getByRole('dialog', { name: 'Ficus lyrata' }).waitFor();
  assert.deepEqual(errors, []);
});

inPrint(
  'the plants of the view are printed on every sheet, whatever their names are',
  async (t) => {
    const names = ['W'.repeat(200), 'نبات الصبار', '🌵 Cactus', 'Salvia ‘Miss Jessopp’s Upright’'];
    const tags = ['x'.repeat(100), 'indoor', ''];
    const plants = Array.from({ length: 23 }, (_, at) => ({
      name: names[at % names.length] ?? '',
      tag: tags[at % tags.length] ?? '',
    }));
    const store = await openStore(t, { plants: [...plants, ...shelf] });
    const { page, errors } = store;
    const { json } = await store.app.call('GET', '/plants?q=a&fields=id', { token: store.token });
    const ids = (json as { id: number }[]).map(({ id }) => id);
    await page.getByLabel('Search').fill('a');
    await countOn(page, `${ids.length} plants`).waitFor();
    await page.getByRole('button', { name: 'Export' }).click();
    await page.getByRole('button', { name: 'Labels' }).click();
    await page.getByText(`${ids.length} labels on 1 page.`).waitFor();
    for (const name of Object.keys(sheets)) {
      await page.getByLabel('Sheet', { exact: true }).selectOption(name);
      const codes = codesOn(await printed(page), name);
      assert.deepEqual(codes.slice(0, ids.length), addressesOf(store, ids), name);
      assert.ok(codes.slice(ids.length).every((code) => code === undefined));
      await page.emulateMedia({ media: 'print' });
      const cut = `[...document.querySelectorAll('#label-pages .label')]
      .filter((label) => label.scrollWidth > label.clientWidth || label.scrollHeight > label.clientHeight)
      .map((label) => label.textContent)`;
      assert.deepEqual(await page.evaluate(cut), [], `${name}: no text leaves its label`);
      await page.emulateMedia({ media: null });
    }
    assert.deepEqual(errors, []);
  },
);
