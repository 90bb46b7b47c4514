import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { it } from 'node:test';
import { startApp } from '../support/app.ts';
import { launchBrowser, openPage, withoutBrowser } from '../support/browser.ts';

const client = new URL('../../src/client/', import.meta.url);

it('a browser loads the TypeScript modules of the client', { skip: withoutBrowser }, async (t) => {
  const { address } = await startApp(t);
  const { page, errors } = await openPage(await launchBrowser(t), `${address}/`);
  for (const file of globSync('*.ts', { cwd: client })) {
    const loaded = await page.evaluate(`import('/client/${file}').then(() => 'loaded')`);
    assert.equal(loaded, 'loaded', file);
  }
  assert.deepEqual(errors, []);
});
