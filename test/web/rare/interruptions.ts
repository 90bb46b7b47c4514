/**
 * What interrupts somebody on the page.
 */
import assert from 'node:assert/strict';
import { override, startApp } from '../../support/app.ts';
import { openPage } from '../../support/browser.ts';
import { serve } from '../../support/command.ts';
import { databaseFile, fill } from '../../support/database.ts';
import {
  addWithRevokedToken,
  changeUser,
  choose,
  done,
  holdResponse,
  namesOf,
  submit,
} from '../actions.ts';
import { browser, countOn, inBrowser, openStore } from '../store.ts';

inBrowser('a link with a new token continues too', async (t) => {
  const { page, app } = await addWithRevokedToken(t);
  const token = await app.token('alice');
  await page.evaluate(`location.hash = 'token=${token}'`);
  await page.locator('#rows').getByText('A name that took long to type').waitFor();
  await page.locator('#renew').waitFor({ state: 'hidden' });
  await page.getByRole('region', { name: 'Connection' }).waitFor({ state: 'hidden' });
});

inBrowser('the last of two links wins, however slow its response is', async (t) => {
  const { page, app } = await openStore(t);
  const { sent, release } = await holdResponse(page, '**/token');
  await page.evaluate(`location.hash = 'token=${await app.token('carol')}'`);
  await sent;
  await changeUser(page, await app.token('bob'));
  await page.getByRole('button', { name: 'bob' }).waitFor();
  await release();
  assert.equal(await page.locator('#who-user').innerText(), 'bob');
});

inBrowser('a token that cannot read shows nothing of the user before', async (t) => {
  const { page, app } = await openStore(t);
  const token = await app.token('bob', { scopes: ['plants:write'] });
  await changeUser(page, token);
  await page.getByRole('button', { name: 'bob' }).waitFor();
  assert.ok(!(await page.content()).includes('Aloe vera'));
  assert.equal(await page.locator('#known-tags option').count(), 0);
});

inBrowser('a service that is down and back costs no reload', async (t) => {
  const { url, path } = databaseFile(t);
  const token = await fill(path, 3);
  const service = await serve(t, ['--database', url]);
  const { page } = await openPage(await browser(), `${service.address}/#token=${token}`);
  t.after(() => page.context().close());
  await countOn(page, '3 plants').waitFor();
  await page.evaluate('window.isSamePage = true');
  await service.stop();
  await page.getByLabel('Search').fill('cactus');
  const banner = page.getByRole('region', { name: 'Connection' });
  await banner.getByText('The service does not respond.').waitFor();
  const tryNow = banner.getByRole('button', { name: 'Try now' });
  for (let failures = 0; failures < 8; failures++)
    await Promise.all([page.waitForEvent('requestfailed'), tryNow.click()]);
  await banner.getByText(/tries again in [4-6] s\./).waitFor();
  const { port } = new URL(service.address);
  await serve(t, ['--database', url, '--port', port]);
  await banner.waitFor({ state: 'hidden' });
  await page.getByRole('heading', { name: 'No plants containing “cactus”' }).waitFor();
  assert.equal(await page.evaluate('window.isSamePage'), true);
});

inBrowser('a failure shows what to do, and one can try again', async (t) => {
  let failures = Infinity;
  const { page } = await openStore(t, {
    wrap: (storage) =>
      override(storage, {
        plants: {
          list: async (caller, query) => {
            if (failures-- > 0) throw new Error('a defect');
            return storage.plants.list(caller, query);
          },
        },
      }),
  });
  await page.getByRole('heading', { name: 'Internal error' }).waitFor();
  failures = 0;
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('Aloe vera').waitFor();
});

inBrowser('a plant is added later if the service cannot accept it now', async (t) => {
  const store = await openStore(t, { plants: [] });
  const { page } = store;
  await page.getByRole('button', { name: 'Add your first plant' }).click();
  for (const [kind, status, title] of [
    ['overloaded', 503, 'Not accepting requests now'],
    ['rate-limited', 429, 'Too many requests'],
  ] as const) {
    const headers = { 'retry-after': '1', 'content-type': 'application/problem+json' };
    const body = JSON.stringify({ type: `/problems/${kind}`, title, detail: '' });
    const refusal = { status, headers, body };
    await page.route('**/plants?*', (route) => route.fulfill(refusal), { times: 1 });
    await page.locator('#add-name').fill(kind);
    await page.keyboard.press('Enter');
    await page.locator('#add-waiting').getByText(`${title}.`).waitFor();
    await page.locator('#add-done').getByText(`Added “${kind}”`).waitFor();
  }
  assert.deepEqual(await namesOf(store), ['overloaded', 'rate-limited']);
});

inBrowser('a reload while a link opens does not lose its token', async (t) => {
  const app = await startApp(t);
  const { page } = await openPage(await browser(), 'about:blank');
  t.after(() => page.context().close());
  const asked = Promise.withResolvers<void>();
  await page.route('**/token', () => asked.resolve(), { times: 1 }); // the service does not respond
  await page.goto(`${app.address}/#token=${await app.token('alice')}`);
  await asked.promise;
  await page.reload();
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
  assert.equal(page.url(), `${app.address}/`);
});

inBrowser('works if the browser blocks the data of sites', async (t) => {
  const app = await startApp(t);
  const { page, errors } = await openPage(await browser(), 'about:blank');
  t.after(() => page.context().close());
  // What Chromium does if its user blocks them.
  await page.addInitScript(`
    for (const name of ['localStorage', 'sessionStorage', 'indexedDB']) {
      Object.defineProperty(window, name, {
        get: () => { throw new DOMException('blocked', 'SecurityError') },
      });
    }
  `);
  await page.goto(app.address);
  await page.locator('#sign-in-token').fill(await app.token('alice'));
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
  await choose(page, 'plants.csv', 'name\nAloe');
  await submit(page).click();
  await done(page, 'Added 1 plant.');
  await page.locator('#import-hide').click();
  await page.locator('#rows').getByText('Aloe').waitFor();
  await page.evaluate(`location.hash = 'token=${await app.token('bob')}'`);
  await page.locator('#confirm-yes').click();
  await page.getByRole('button', { name: 'bob' }).waitFor();
  await page.getByRole('button', { name: 'bob' }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Open your store' }).waitFor();
  await page.goto(`${app.address}/docs`);
  await page.locator('.samples input').first().waitFor({ state: 'attached' });
  assert.deepEqual(errors, []);
});
