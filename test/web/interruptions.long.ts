import assert from 'node:assert/strict';
import { tooManyWrites } from '../../src/problem.ts';
import { override } from '../support/app.ts';
import { openPage } from '../support/browser.ts';
import { serve } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';
import { addWithRevokedToken } from './interruptions.ts';
import {
  browser,
  inBrowser,
  changeUser,
  deleteChosen,
  namesOf,
  openStore,
  toast,
} from './store.ts';

inBrowser('a link with a new token continues too', async (t) => {
  const store = await addWithRevokedToken(t);
  const { page, app } = store;
  const token = await app.token('alice');
  await page.evaluate(`location.hash = 'token=${token}'`);
  await page.locator('#rows').getByText('A name that took long to type').waitFor();
  await page.locator('#renew').waitFor({ state: 'hidden' });
  await page.getByRole('region', { name: 'Connection' }).waitFor({ state: 'hidden' });
});

inBrowser('the last of two links wins, however slow its response is', async (t) => {
  const { page, app } = await openStore(t);
  const { promise: bobIsOpen, resolve } = Promise.withResolvers<void>();
  const { promise: isLate, resolve: responded } = Promise.withResolvers<void>();
  await page.route(
    '**/token',
    async (route) => {
      await bobIsOpen;
      await route.continue().catch(() => {}); // nobody may wait for it any more
      responded();
    },
    { times: 1 },
  );
  const carol = page.waitForRequest('**/token');
  await page.evaluate(`location.hash = 'token=${await app.token('carol')}'`);
  await carol;
  await changeUser(page, await app.token('bob'));
  await page.getByRole('button', { name: 'bob' }).waitFor();
  resolve();
  await isLate;
  assert.equal(await page.locator('#who-user').innerText(), 'bob');
});

inBrowser('a token that cannot read shows nothing of the user before', async (t) => {
  const { page, app } = await openStore(t);
  await page.getByText('4 plants', { exact: true }).waitFor();
  const token = await app.token('bob', { scopes: ['plants:write'] });
  await changeUser(page, token);
  await page.getByRole('button', { name: 'bob' }).waitFor();
  assert.ok(!(await page.content()).includes('Aloe vera'));
  assert.equal(await page.locator('#known-tags option').count(), 0);
});

inBrowser('the token of another user opens their store, and adds nothing there', async (t) => {
  const { page, app } = await addWithRevokedToken(t);
  const token = await app.token('bob', { store: 'north' });
  await page.locator('#renew-token').fill(token);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
  assert.equal(await page.locator('#add-name').inputValue(), '', 'it was typed by alice');
  assert.equal(await page.title(), 'north · Plant Store');
  assert.deepEqual((await app.call('GET', '/plants', { token })).json, []);
});

inBrowser('a service that is down and back costs no reload', async (t) => {
  const { url, path } = databaseFile(t);
  const token = await fill(path, 3);
  const service = await serve(t, ['--database', url]);
  const { page } = await openPage(await browser(), `${service.address}/#token=${token}`);
  t.after(() => page.context().close());
  await page.getByText('3 plants', { exact: true }).waitFor();
  await page.evaluate('window.isSamePage = true');
  await service.stop();
  await page.getByLabel('Filter by tag').fill('cactus');
  await page.keyboard.press('Enter');
  const banner = page.getByRole('region', { name: 'Connection' });
  await banner.getByText('The service does not respond.').waitFor();
  await banner.getByText(/tries again in \d+ s\./).waitFor();
  const { port } = new URL(service.address);
  await serve(t, ['--database', url, '--port', port]);
  await banner.waitFor({ state: 'hidden' });
  await page.getByRole('heading', { name: 'No plants with the tag “cactus”' }).waitFor();
  assert.equal(await page.evaluate('window.isSamePage'), true);
});

inBrowser('an overloaded service gets the plant later', async (t) => {
  let refusals = 1;
  const store = await openStore(t, {
    plants: [],
    wrap: (storage) =>
      override(storage, {
        plants: {
          create: async (caller, plant) => {
            if (refusals-- > 0) throw tooManyWrites();
            return storage.plants.create(caller, plant);
          },
        },
      }),
  });
  const { page } = store;
  await page.getByRole('button', { name: 'Add your first plant' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill('Patience');
  await page.keyboard.press('Enter');
  await page
    .locator('#add-waiting')
    .getByText(/Not accepting requests now\. .*tries again/)
    .waitFor();
  await page.getByText('Added “Patience”').waitFor();
  assert.deepEqual(await namesOf(store), ['Patience']);
});

inBrowser('the page explains a limit, and adds the plant when the limit allows it', async (t) => {
  const plan = { isLimited: false };
  const limiter = {
    take: () => ({
      isAllowed: !plan.isLimited,
      remaining: plan.isLimited ? 0 : 9,
      nextMs: 1_000,
    }),
  };
  const limits = { requests: { rate: { requests: 9, windowSeconds: 1 }, limiter } };
  const store = await openStore(t, { plants: [], limits });
  const { page } = store;
  await page.getByRole('button', { name: 'Add your first plant' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill('Patience');
  plan.isLimited = true;
  await page.keyboard.press('Enter');
  await page
    .locator('#add-waiting')
    .getByText(/Too many requests\. .*tries again/)
    .waitFor();
  plan.isLimited = false;
  await page.getByText('Added “Patience”').waitFor();
  assert.deepEqual(await namesOf(store), ['Patience']);
});

inBrowser('a plant with an id of its own is added once if a response is lost', async (t) => {
  const store = await openStore(t, { plants: [] });
  const { page } = store;
  await page.route(
    '**/plants?*',
    async (route) => {
      await route.fetch();
      await route.abort();
    },
    { times: 1 },
  );
  await page.getByRole('button', { name: 'Add your first plant' }).click();
  await page.getByText('Choose the id yourself').click();
  await page.locator('#add-id').fill('7');
  await page.locator('#add-name').fill('Once');
  await page.keyboard.press('Enter');
  await page.getByText('Added “Once” with the id 7.').waitFor();
  assert.equal(await page.locator('#add-waiting').innerText(), '');
  assert.deepEqual(await namesOf(store), ['Once']);
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

inBrowser('a plant that somebody else deleted is gone, and no error', async (t) => {
  const { page, app, token } = await openStore(t);
  for (const id of [1, 2]) await app.call('DELETE', `/plants/${id}`, { token });
  await page.getByText('Monstera deliciosa').click();
  await page
    .getByText('Someone has deleted this plant, or no longer shares it with you.')
    .waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.locator('#rows').getByText('Monstera deliciosa').waitFor({ state: 'detached' });
  await page.getByRole('checkbox', { name: 'Select Ficus' }).click();
  await deleteChosen(page);
  await toast(page, 'Deleted “Ficus lyrata”.').waitFor();
});

inBrowser('a read-only token shows no control that it cannot use', async (t) => {
  const { page } = await openStore(t, { access: { scopes: ['plants:read'] } });
  await page.getByRole('button', { name: 'alice read only' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Add plant' }).count(), 0);
  assert.equal(await page.getByRole('checkbox', { name: 'Select' }).count(), 0);
  await page.locator('#grid').focus();
  await page.keyboard.press('Delete');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Monstera deliciosa' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Delete' }).count(), 0);
});
