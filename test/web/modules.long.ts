import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { startApp } from '../support/app.ts';
import { openPage } from '../support/browser.ts';
import { browser, inBrowser } from './store.ts';

const client = new URL('../../src/client/', import.meta.url);

inBrowser('a browser loads the TypeScript modules of the client', async (t) => {
  const { address } = await startApp(t);
  const { page, errors } = await openPage(await browser(), `${address}/`);
  for (const file of globSync('*.ts', { cwd: client })) {
    const loaded = await page.evaluate(`import('/client/${file}').then(() => 'loaded')`);
    assert.equal(loaded, 'loaded', file);
  }
  assert.deepEqual(errors, []);
});
