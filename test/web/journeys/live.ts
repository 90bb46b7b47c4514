/**
 * What others do appears by itself.
 */
import assert from 'node:assert/strict';
import type { Route } from 'playwright-core';
import { idOf } from '../../support/tokens.ts';
import { until } from '../../support/until.ts';
import {
  assertNames,
  holdResponse,
  openBin,
  press,
  promisedMs,
  switchTab,
  toast,
} from '../actions.ts';
import { inBrowser, openStore, shelfNames } from '../store.ts';

inBrowser('a row that somebody else changes shows it, also to screen readers', async (t) => {
  const { page, app, errors } = await openStore(t);
  const bob = { token: await app.token('bob', { role: 'manager' }) };
  const told = (text: string) => page.locator('#live-others').getByText(text).waitFor();
  await app.call('PATCH', '/plants/2', { ...bob, json: { name: 'Fern' } });
  const changed = page.locator('#rows .changed');
  await changed.getByText('Fern').waitFor({ timeout: promisedMs });
  await told('bob updated “Fern”.');
  await changed.waitFor({ state: 'detached' });
  await app.call('DELETE', '/plants/1', bob);
  await assertNames(page, ['Fern', 'Thymus vulgaris', 'Aloe vera']);
  await told('bob deleted “Monstera deliciosa”.');

  await page.getByRole('checkbox', { name: 'Select Aloe' }).click();
  await page.getByRole('checkbox', { name: 'Select Thymus' }).click();
  await app.call('DELETE', '/plants/4', bob);
  await page.getByText('1 plant selected').waitFor();
  await page.locator('#selection-clear').click();

  // What the user does is no news.
  await page.locator('#rows').getByText('Thymus vulgaris').dblclick();
  await page.locator('#edit-name').fill('Thyme');
  await press(page, 'Enter');
  await page.getByRole('button', { name: 'Add plant' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill('Ivy');
  await press(page, 'Enter');
  await page.locator('#add-done').getByText('Added “Ivy”').waitFor();
  await press(page, 'Escape');
  await app.call('PATCH', '/plants/2', { ...bob, json: { name: 'Ficus' } });
  await changed.getByText('Ficus').waitFor();
  assert.equal(await changed.count(), 1);
  await assertNames(page, ['Ficus', 'Thyme', 'Ivy']);
  assert.deepEqual(errors, []);
});

inBrowser('a dialog shows what somebody else does to its plant', async (t) => {
  const { page, app } = await openStore(t);
  const bob = { token: await app.token('bob', { role: 'manager' }) };
  await page.locator('#rows').getByText('Ficus lyrata').click();
  await page.locator('#plant-steps').getByText('Added').waitFor();
  await app.call('PATCH', '/plants/2', { ...bob, json: { name: 'Fern' } });
  await page.getByRole('dialog', { name: 'Fern' }).waitFor({ timeout: promisedMs });
  await page.locator('#plant-steps').getByText('Renamed from').waitFor();
  await app.call('DELETE', '/plants/2', bob);
  const gone = page.getByText('Someone has deleted this plant.', { exact: true }); // and nobody shares with a manager
  await gone.waitFor({ timeout: promisedMs });
  await app.call('POST', '/plants/2/restore', bob);
  await gone.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Edit', exact: true }).waitFor();
  await app.call('DELETE', '/plants/2', bob);
  await page.getByRole('button', { name: 'Restore' }).click();
  await toast(page, 'Restored “Fern”.').waitFor();

  await page.route('**/history*', (route) => route.fulfill({ status: 500 }));
  await page.locator('#rows').getByText('Fern').click();
  await page.locator('#plant-failure').filter({ visible: true }).waitFor();
  await page.getByText('The service keeps no changes of').waitFor({ state: 'hidden' });
  await page.unroute('**/history*');
  await press(page, 'Escape');

  const early = await holdResponse(page, '**/history*');
  await page.locator('#rows').getByText('Fern').click();
  await early.sent;
  const late = await holdResponse(page, '**/history*');
  await app.call('PATCH', '/plants/2', { ...bob, json: { name: 'Ivy' } });
  await late.sent;
  await early.release();
  await late.release();
  await page.locator('#plant-steps').getByText('to “Ivy”').waitFor();
});

inBrowser('the bin shows what somebody else deletes and restores', async (t) => {
  const { page, app } = await openStore(t);
  const bob = { token: await app.token('bob', { role: 'manager' }) };
  await openBin(page);
  await page.getByText('The bin is empty.').waitFor();
  const maria = { token: await app.token('maria', { role: 'manager' }) };
  await app.call('DELETE', '/plants/1', bob);
  await app.call('DELETE', '/plants/2', maria);
  const restore = page.getByRole('button', { name: 'Restore Ficus lyrata' });
  await restore.waitFor({ timeout: promisedMs });
  await restore.focus();
  await app.call('POST', '/plants/1/restore', bob);
  await page.locator('#bin-plants').getByText('Monstera').waitFor({ state: 'detached' });
  assert.equal(await page.evaluate('document.activeElement.ariaLabel'), 'Restore Ficus lyrata');
});

inBrowser(
  'nothing that is typed is lost when somebody else changes or deletes the plant',
  async (t) => {
    const { page, app, token } = await openStore(t);
    const bob = { token: await app.token('bob', { role: 'manager' }) };
    const name = page.locator('#edit-name');
    const edit = async (plant: string) => {
      await page.getByRole('button', { name: `Edit ${plant}` }).click();
      await page.locator('#edit-name').waitFor();
    };
    await edit('Ficus');
    await app.call('PATCH', '/plants/2', { ...bob, json: { name: 'Fern' } });
    await until('the field has the new name', async () => (await name.inputValue()) === 'Fern');
    await page.locator('#edit-tag').fill('mine');
    await app.call('PATCH', '/plants/2', { ...bob, json: { tag: 'of bob' } });
    await page.locator('#edit-choice').getByText('meanwhile: “Fern” (of bob).').waitFor();
    await page.locator('#edit-tag:focus').waitFor();
    assert.equal(await page.locator('#edit-tag').inputValue(), 'mine');
    await press(page, 'Enter');
    await page.getByRole('button', { name: 'Save mine' }).click();
    await page.locator('#edit').waitFor({ state: 'hidden' });
    const { json } = await app.call('GET', '/plants/2', { token });
    assert.deepEqual(json, { name: 'Fern', tag: 'mine' });

    await edit('Aloe');
    await app.call('DELETE', '/plants/4', bob);
    await toast(page, 'Someone has deleted “Aloe vera”').waitFor({ timeout: promisedMs });
    await page.locator('#edit').waitFor({ state: 'hidden' });
    await edit('Thymus');
    await name.fill('Typed');
    await app.call('DELETE', '/plants/3', bob);
    await page.locator('#edit-choice').getByText('Someone has deleted “Thymus').waitFor();
    await page.locator('#edit-name:focus').waitFor();
    assert.equal(await name.inputValue(), 'Typed');
    const restoreAndSave = page.getByRole('button', { name: 'Restore and save' });
    await restoreAndSave.waitFor();
    await app.call('POST', '/plants/3/restore', bob);
    await page.getByRole('button', { name: 'Save', exact: true }).waitFor();
    await page.locator('#edit-choice:empty').waitFor({ state: 'attached' });
    await app.call('DELETE', '/plants/3', bob);
    await restoreAndSave.click();
    await assertNames(page, ['Monstera deliciosa', 'Fern', 'Typed']);
  },
);

inBrowser('a change makes a plant enter and leave a filter and a search', async (t) => {
  const { page, app } = await openStore(t);
  const bob = { token: await app.token('bob', { role: 'manager' }) };
  const patch = (id: number, json: object) => app.call('PATCH', `/plants/${id}`, { ...bob, json });
  await page.getByRole('button', { name: 'Show only the tag indoor' }).first().click();
  await assertNames(page, ['Monstera deliciosa', 'Ficus lyrata']);
  await patch(1, { tag: 'hall' });
  await patch(3, { tag: 'Indoor' }); // another tag
  await patch(4, { tag: 'indoor' });
  await assertNames(page, ['Ficus lyrata', 'Aloe vera']);
  await page.getByRole('button', { name: 'Remove the filter' }).click();
  await page.getByLabel('Search').fill('aloe');
  await assertNames(page, ['Aloe vera']);
  await patch(1, { name: 'Aloe ferox' });
  await assertNames(page, ['Aloe ferox', 'Aloe vera']);
  await patch(4, { name: 'Moss', tag: null });
  await assertNames(page, ['Aloe ferox']);
});

inBrowser('plants appear when they are shared, and disappear when they are not', async (t) => {
  const { page, app, token } = await openStore(t, { plants: [] });
  const scopes = ['plants:read', 'plants:write', 'shares:write'] as const;
  // The role of a user can change too.
  await app.token('alice', { role: 'member' });
  const bob = { token: await app.token('bob', { scopes }) };
  for (const name of ['Of bob', 'Another'])
    await app.call('POST', '/plants', { ...bob, json: { name } });
  await app.call('POST', '/plants', { token, json: { name: 'Of alice' } });
  await assertNames(page, ['Of alice']);
  await page.getByRole('button', { name: 'Edit Of alice' }).click();
  await page.locator('#edit-name').fill('Typed');
  await app.call('PUT', '/shares/alice', { ...bob, json: { access: 'read' } });
  await assertNames(page, ['Of bob', 'Another', 'Of alice']);
  await app.call('PATCH', '/plants/1', { ...bob, json: { name: 'Still of bob' } });
  await assertNames(page, ['Still of bob', 'Another', 'Of alice']);
  await app.call('DELETE', '/shares/alice', bob);
  await assertNames(page, ['Of alice']);
  assert.equal(await page.locator('#edit-name:focus').inputValue(), 'Typed');
});

inBrowser(
  'a hidden tab asks for nothing, and shows what it has missed when it is back',
  async (t) => {
    const { page, app } = await openStore(t);
    const bob = { token: await app.token('bob', { role: 'manager' }) };
    const asked: string[] = [];
    await switchTab(page, 'hidden');
    page.on('request', (request) => asked.push(request.url()));
    t.after(() => page.removeAllListeners('request'));
    await app.call('DELETE', '/plants/2', bob);
    await app.call('POST', '/plants', { ...bob, json: { name: 'Ivy' } });
    assert.deepEqual(asked, []);
    await switchTab(page, 'visible');
    await assertNames(page, ['Monstera deliciosa', 'Thymus vulgaris', 'Aloe vera', 'Ivy']);
    assert.ok(
      asked.every((url) => /\/changes\?.*after=/.test(url)),
      'it continues at its cursor',
    );
  },
);

inBrowser('a proxy that ends waiting requests, and too many tabs, only slow it down', async (t) => {
  const { page, app, token } = await openStore(t);
  const bob = { token: await app.token('bob', { role: 'manager' }) };
  const shows = async (name: string) => {
    await app.call('POST', '/plants', { ...bob, json: { name } });
    await page.locator('#rows').getByText(name).waitFor({ timeout: promisedMs });
    assert.equal(await page.locator('#connection').isVisible(), false);
    await switchTab(page, 'hidden');
  };
  await switchTab(page, 'hidden');
  const isCut = Promise.withResolvers<void>();
  const waiting = '**/changes?*wait=*';
  await page.route(waiting, (route) => route.abort());
  const timeOut = async (route: Route) => {
    await route.fulfill({ status: 408 });
    isCut.resolve();
  };
  await page.route(waiting, timeOut, { times: 1 });
  await switchTab(page, 'visible');
  await isCut.promise;
  await shows('Seen behind a proxy');
  await page.unrouteAll({ behavior: 'wait' });

  const { headers } = await app.call('GET', '/changes', { token });
  const [, next = ''] = /^<([^>]+)>/.exec(headers.get('link') ?? '') ?? [];
  const tabs = Array.from({ length: 16 }, () => app.call('GET', `${next}&wait=25`, { token }));
  await until('no other request can wait', async () => {
    return (await app.call('GET', `${next}&wait=1`, { token })).status === 429;
  });
  const refused = page.waitForResponse((response) => response.status() === 429);
  await switchTab(page, 'visible');
  await refused;
  await shows('Seen in the last tab');
  assert.deepEqual(
    (await Promise.all(tabs)).map(({ status }) => status),
    Array.from({ length: 16 }, () => 200),
  );
});

inBrowser('a token that ends while nobody does anything opens no dialog', async (t) => {
  const { page, app, token } = await openStore(t);
  await page.getByRole('button', { name: 'Add plant' }).click();
  await page.getByRole('textbox', { name: 'Name' }).pressSequentially('Typ');
  await app.storage.identity.revokeToken(idOf(token), Date.now());
  await page.locator('#add-waiting').getByText('Your token no longer works.').waitFor();
  await page.keyboard.type('ed');
  assert.equal(await page.getByRole('textbox', { name: 'Name' }).inputValue(), 'Typed');
  await press(page, 'Enter');
  await page.locator('#renew-token').fill(await app.token('alice'));
  await press(page, 'Enter');
  await assertNames(page, [...shelfNames, 'Typed']);
  const bob = { token: await app.token('bob', { role: 'manager' }) };
  await app.call('POST', '/plants', { ...bob, json: { name: 'Ivy' } });
  await assertNames(page, [...shelfNames, 'Typed', 'Ivy']);
});
