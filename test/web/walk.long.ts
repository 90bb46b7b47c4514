/**
 * A nursery's first day on the page, at the address of its computer: the plants come from its files and go onto labels.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { openPage } from '../support/browser.ts';
import { pagesOf } from '../support/print.ts';
import { serveOnTerminal } from '../support/serve-on-terminal.ts';
import { spreadsheetPlants, spreadsheets } from '../support/spreadsheets.ts';
import { tempFolder } from '../support/temp.ts';
import { assertNames, choose, done, submit } from './actions.ts';
import { browser, inBrowser } from './store.ts';

/** At which others in the network find this computer. */
const networkAddress =
  Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal)?.address ?? '127.0.0.1';

/** Starts the service for the first time. Returns the link that it prints, with the address in the network. */
async function firstLink(t: TestContext): Promise<string | undefined> {
  const database = `sqlite:${join(tempFolder(t), 'plants.db')}`;
  const service = await serveOnTerminal(t, ['--host', '0.0.0.0', '--database', database]);
  const [, port, token] = /http:\/\/\S+:(\d+)\/#token=(\w+)/.exec(service?.output() ?? '') ?? [];
  return port && `http://${networkAddress}:${port}/#token=${token}`;
}

inBrowser('a nursery starts, imports its files, and prints labels', async (t) => {
  const link = await firstLink(t);
  if (link === undefined) return;
  const { page, errors } = await openPage(await browser(), link);
  t.after(() => page.context().close());
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();

  for (const name of Object.keys(spreadsheets)) await importSpreadsheet(page, name);
  const names = spreadsheetPlants.map((plant) => plant.name).toReversed();
  await page.locator('#import-hide').click();
  await assertNames(
    page,
    Object.keys(spreadsheets).flatMap(() => names),
  );
  await importCorrected(page);
  await importExport(page);
  await printLabels(page);
  // The browser reports each refusal, and a header that has no effect without HTTPS.
  const unexpected = errors.filter((error) => !/status of 400|Opener-Policy/.test(error));
  assert.deepEqual(unexpected, []);
});

async function importSpreadsheet(page: Page, name: string): Promise<void> {
  const { content, firstLine, note = '' } = spreadsheets[name] ?? { content: '' };
  if (await page.locator('#import-again').isVisible())
    await page.getByRole('button', { name: 'Another file' }).click();
  await choose(page, `${name}.csv`, content);
  if (firstLine !== undefined) {
    await page.getByLabel('Line 1 of the file').selectOption(firstLine);
    await page.locator('#import-column-name').selectOption('0');
    await page.locator('#import-column-tag').selectOption('1');
  } else await page.locator('#import-notes').getByText(note).waitFor();
  await page.getByText(`${name}.csv: 2 rows`, { exact: true }).waitFor();
  await submit(page).click();
  await done(page, 'Added 2 plants.');
}

/** A tab in a name is shown, and the saved file is imported once it is gone. */
async function importCorrected(page: Page): Promise<void> {
  await choose(page, 'bestand.csv', 'Name;Tag\nSalbei\t;Küche\nMinze;Küche\n');
  await submit(page).click();
  await done(page, 'Added 1 plant; 1 row was refused.');
  await page.getByText('The name has a tab behind "Salbei". Remove it.').waitFor();
  const saved = await downloaded(page, 'Save refused rows');
  await page.getByRole('button', { name: 'Another file' }).click();
  await choose(page, 'bestand-refused.csv', saved.replace('Salbei\t', 'Salbei'));
  await submit(page).click();
  await done(page, 'Added 1 plant.');
  await page.locator('#import-hide').click();
}

/** What was edited in a spreadsheet comes back, and is undone as one. */
async function importExport(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Export' }).click();
  const saved = await downloaded(page, 'CSV');
  const edited = saved.replaceAll('Möhre', 'Karotte');
  await choose(page, 'plants.csv', `${edited},Dill,Küche\n`);
  await page.getByRole('button', { name: 'Update 9, add 1' }).click();
  await done(page, 'Added 1 plant; updated 9; 11 were unchanged.');
  await page.locator('#import').getByRole('button', { name: 'Undo' }).click();
  await done(page, 'Undid the import of 10 plants.');
  await page.locator('#import-hide').click();
  await page.locator('#rows').getByText('Möhre').first().waitFor();
  await page.getByRole('button', { name: 'Export' }).click();
  assert.equal(await downloaded(page, 'CSV'), saved);
}

async function downloaded(page: Page, button: string): Promise<string> {
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: button, exact: true }).click();
  return readFileSync(await (await download).path(), 'utf8');
}

/** The code of the first label opens its plant, from any device of the network. */
async function printLabels(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Export' }).click();
  await page.getByRole('button', { name: 'Labels' }).click();
  await page.getByText('20 labels on 1 page.').waitFor();
  const [paper] = pagesOf(await page.pdf({ preferCSSPageSize: true }));
  const opened = paper?.qrCode({ x: 7, y: 15, width: 64, height: 38 });
  assert.equal(opened, new URL('#plant=1', page.url()).href);
}
