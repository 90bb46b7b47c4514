/**
 * The bin, Undo, and the history of a plant.
 */
import assert from 'node:assert/strict';
import { assertNames, deleteChosen, openBin, press, switchTab, toast } from '../actions.ts';
import { inBrowser, openStore, shelfNames } from '../store.ts';

inBrowser('the bin shows what was deleted by whom, and brings it back', async (t) => {
  const { page, app, errors } = await openStore(t);
  const bob = await app.token('bob');
  const maria = await app.token('maria', { role: 'manager' });
  await app.call('POST', '/plants', { token: bob, json: { name: 'Ivy' } });
  await app.call('DELETE', '/plants/5', { token: bob });
  await app.call('DELETE', '/plants/2', { token: maria });
  await page.getByRole('checkbox', { name: 'Select Thymus' }).click();
  await deleteChosen(page);
  await toast(page, 'Deleted “Thymus vulgaris”.').waitFor();
  await openBin(page);
  await page.locator('#bin-plants li').nth(2).waitFor();
  const entries = await page.locator('#bin-plants li').allInnerTexts();
  assert.deepEqual(
    entries.map((text) => text.replace(/ · [^·]*$/, '').split(/\n+/)),
    [
      ['Thymus vulgaris', 'Restore', 'herbs · deleted by alice'],
      ['Ficus lyrata', 'Restore', 'indoor · deleted by maria'],
      ['Ivy', 'Restore', 'owned by bob · deleted by bob'],
    ],
  );
  await page.getByRole('button', { name: 'Restore Ficus lyrata' }).focus();
  await press(page, 'Enter');
  await page.getByText('Restored “Ficus lyrata”.').waitFor();
  const focused = () => page.evaluate('document.activeElement.ariaLabel');
  assert.equal(await focused(), 'Restore Ivy', 'the button that took its place');
  await press(page, 'Enter');
  await page.getByText('Restored “Ivy”.').waitFor();
  assert.equal(await focused(), 'Restore Thymus vulgaris');
  await press(page, 'Escape');
  await page.locator('#more-open:focus').waitFor();
  await assertNames(page, ['Monstera deliciosa', 'Ficus lyrata', 'Aloe vera', 'Ivy']);
  assert.equal((await app.call('GET', '/plants/5', { token: bob })).status, 200);
  assert.deepEqual(errors, []);
});

inBrowser(
  'the bin says why a plant cannot be restored, and the last one leaves it empty',
  async (t) => {
    const { page, app, token } = await openStore(t);
    for (const id of [1, 2, 3, 4]) {
      const other = await app.token(`user-${id}`, { role: 'manager' }); // nobody deletes two at once
      await app.call('DELETE', `/plants/${id}`, { token: other });
    }
    await openBin(page);
    await page.getByRole('button', { name: 'Restore Ficus lyrata' }).waitFor();
    await switchTab(page, 'hidden');
    await app.call('POST', '/plants/3/restore', { token });
    await app.call('PATCH', '/plants/3', { token, json: { tag: '' } });
    await page.getByRole('button', { name: 'Restore Thymus vulgaris' }).click();
    await page.getByText('“Thymus vulgaris” was changed or replaced').waitFor();
    await app.call('POST', '/plants/2/restore', { token });
    await page.getByRole('button', { name: 'Restore Ficus lyrata' }).click();
    await page.getByText('Restored “Ficus lyrata”.').waitFor();
    await app.call('POST', '/plants', { token, json: { name: 'Other', id: 1 } });
    await app.call('DELETE', '/plants/1', { token });
    await page.getByRole('button', { name: 'Restore Monstera deliciosa' }).click();
    await page.getByText('Restored “Other”.').waitFor();
    await switchTab(page, 'visible');
    await page.getByRole('button', { name: 'Restore Aloe vera' }).click();
    await page.getByText('The bin is empty.').waitFor();
    await page.getByText('Restored “Aloe vera”.').waitFor();
    await page.locator('#bin-list-title:focus').waitFor();
    await press(page, 'Escape');
    await assertNames(page, ['Other', 'Ficus lyrata', 'Thymus vulgaris', 'Aloe vera']);
  },
);

inBrowser('what was deleted at once is one entry of the bin, and comes back at once', async (t) => {
  const store = await openStore(t);
  const { page } = store;
  await page.locator('#select-all').click();
  await page.getByRole('checkbox', { name: 'Select Aloe' }).click();
  await deleteChosen(page);
  await toast(page, 'Deleted 3 plants.').waitFor();
  await openBin(page);
  const entries = page.locator('#bin-plants li');
  await entries.first().waitFor();
  const [text = ''] = await entries.allInnerTexts();
  assert.match(
    text,
    /^3 plants\s+Show\s+Restore all\s+.*Monstera deliciosa.* · deleted by alice · today, \d+:\d\d [AP]M$/,
  );
  const entry = /^Show 3 plants deleted by alice, today/;
  await page.getByRole('button', { name: entry }).click();
  await page.getByRole('button', { name: 'Restore Ficus lyrata' }).click();
  await page.getByText('Restored “Ficus lyrata”.').waitFor();
  await page.getByRole('button', { name: /^Restore all 2 plants/ }).click();
  await page.locator('#bin-done').getByText('Restored 2 plants.').waitFor();
  await page.getByText('The bin is empty.').waitFor();
  await press(page, 'Escape');
  await assertNames(page, shelfNames);
});

inBrowser('a token that cannot write shows no control that it cannot use', async (t) => {
  const { page, app } = await openStore(t, { access: { scopes: ['plants:read'] } });
  await page.getByRole('button', { name: 'alice read only' }).waitFor();
  await page.getByText('Enter open').waitFor();
  assert.equal(await page.getByText('F2 edit').isVisible(), false);
  assert.equal(await page.getByRole('button', { name: 'Add plant' }).count(), 0);
  assert.equal(await page.getByRole('checkbox', { name: 'Select' }).count(), 0);
  await page.locator('#grid').focus();
  await press(page, 'Delete', 'Enter');
  await page.getByRole('dialog', { name: 'Monstera deliciosa' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Delete' }).count(), 0);
  await press(page, 'Escape');
  await app.call('DELETE', '/plants/1', { token: await app.token('alice') });
  await openBin(page);
  await page.locator('#bin-plants').getByText('Monstera deliciosa').waitFor();
  assert.equal(await page.locator('#bin-plants button').count(), 0);
});

inBrowser('a plant that somebody else deleted or restored can be restored here too', async (t) => {
  const { page, app, token } = await openStore(t);
  await switchTab(page, 'hidden');
  await app.call('DELETE', '/plants/2', { token });
  await page.locator('#rows').getByText('Ficus lyrata').click();
  await page.getByText('Someone has deleted this plant').waitFor();
  await page.locator('#plant-steps').getByText('Deleted').waitFor();
  await page.locator('#rows').getByText('Ficus lyrata').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Restore' }).click();
  await toast(page, 'Restored “Ficus lyrata”.').waitFor();
  await assertNames(page, shelfNames);

  await page.getByRole('checkbox', { name: 'Select Thymus' }).click();
  await deleteChosen(page);
  const undo = page.getByRole('button', { name: 'Undo' });
  await undo.waitFor();
  await app.call('POST', '/plants/3/restore', { token });
  await undo.click();
  await toast(page, 'Restored “Thymus vulgaris”.').waitFor();
  await assertNames(page, shelfNames);

  await app.call('DELETE', '/plants/4', { token });
  await page.getByRole('checkbox', { name: 'Select Aloe' }).click();
  await deleteChosen(page);
  await toast(page, 'Deleted “Aloe vera”.').waitFor();
});

inBrowser('an offer to undo waits for whoever is at it', async (t) => {
  const { page } = await openStore(t, { context: {} });
  await page.clock.install();
  await page.locator('#grid').focus();
  await press(page, 'Delete');
  const undo = page.getByRole('button', { name: 'Undo' });
  await undo.waitFor();
  await press(page, 'Tab');
  assert.equal(await page.locator(':focus').innerText(), 'Undo', 'one Tab from the table');
  await page.clock.runFor(90_000);
  assert.equal(await undo.count(), 1);
  await press(page, 'Shift+Tab');
  await page.clock.runFor(60_000);
  await undo.waitFor({ state: 'detached' });
});

inBrowser('the history of a plant tells who changed what', async (t) => {
  const { page, app, token } = await openStore(t);
  const bob = await app.token('bob', { role: 'manager' });
  for (const json of [{ name: 'Ficus' }, { tag: null }, { name: 'Ficus lyrata', tag: 'hall' }]) {
    await app.call('PATCH', '/plants/2', { token: bob, json });
  }
  await app.call('DELETE', '/plants/2', { token: bob });
  await app.call('POST', '/plants/2/restore', { token });
  await page.locator('#rows').getByText('Ficus lyrata').click();
  const steps = page.locator('#plant-steps li');
  await steps.nth(5).waitFor();
  // What the browser has drawn of them would be empty while they are read again.
  const texts = await steps.evaluateAll((all) =>
    all.map(({ children }) => Array.from(children, ({ textContent }) => textContent)),
  );
  assert.deepEqual(
    texts.map(([what, who = '']) => [what, who.replace(/ · [^·]*$/, '')]),
    [
      ['Restored', 'alice'],
      ['Deleted', 'bob'],
      ['Renamed from “Ficus” to “Ficus lyrata” · Tag “hall” added', 'bob'],
      ['Tag “indoor” removed', 'bob'],
      ['Renamed from “Ficus lyrata” to “Ficus”', 'bob'],
      ['Added', 'alice'],
    ],
  );
  await page.locator('#plant-facts').getByText('hall').waitFor();
  await page.locator('#rows').getByText('hall').waitFor();
});
