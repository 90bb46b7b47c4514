import assert from 'node:assert/strict';
import { it } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import { browserOfFile, openStore } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

it('scrolls to the end of a long list and back, with few rows at a time', { skip }, async (t) => {
  const plants = 2_000;
  const { app, page } = await openStore(t, browser(), { plants: [] });
  const list = Array.from({ length: plants }, (_, at) => ({ id: at + 1, name: 'Ivy', tag: '' }));
  await app.database.fill(list);
  let reads = 0;
  page.on('request', (request) => (reads += Number(request.url().includes('/plants?'))));
  await page.reload();
  await page.getByText(/^more than \d+ plants$/).waitFor();
  const last = page.locator(`#rows [aria-rowindex="${plants + 1}"] .id`);
  await page.locator('#grid').focus();
  while (!(await last.isVisible())) await page.keyboard.press('End');
  assert.equal(await last.innerText(), '2000');
  await page.locator(`#grid[aria-rowcount="${plants + 1}"]`).waitFor();
  await page.getByText('2,000 plants', { exact: true }).waitFor();
  assert.ok((await page.locator('#rows .row').count()) < 60);
  assert.equal(reads, 9); // the last one finds the end

  await page.keyboard.press('Home');
  await page.locator('#rows .id').getByText('1', { exact: true }).waitFor();
});
