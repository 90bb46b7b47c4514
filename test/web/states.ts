/**
 * The states of the page, each checked for accessibility.
 */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { scopes } from '../../src/access/access.ts';
import { startApp } from '../support/app.ts';
import { assertAccessible, type Look } from '../support/accessibility.ts';
import { openPage } from '../support/browser.ts';
import { idOf } from '../support/tokens.ts';
import { choose, done, openPeople, submit, switchTab } from './actions.ts';
import { browser, inBrowser, openStore } from './store.ts';

/** Adds the test of the states of a store with plants, and of its dialogs, in these looks. */
export function testStore(looks: readonly Look[]): void {
  const assertIn = async (page: Page, state: string) => assertAccessible(page, state, looks);

  inBrowser('a store with plants, and its dialogs', async (t) => {
    const { page, app, token, errors } = await openStore(t);
    await page.locator('#grid').focus();
    await assertIn(page, 'table');
    await page.getByLabel('Search').click();
    await page.keyboard.press('ArrowDown');
    await page.getByRole('option', { name: 'herbs', selected: true }).waitFor();
    await assertIn(page, 'tags below the search box');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'alice' }).click();
    await assertIn(page, 'identity');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Export' }).click();
    await assertIn(page, 'export');
    await page.getByRole('button', { name: 'Labels' }).click();
    await page.getByText('4 labels on 1 page.').waitFor();
    await assertIn(page, 'labels');
    await page.keyboard.press('Escape');
    await page.getByRole('checkbox', { name: 'Select Monstera' }).click();
    await assertIn(page, 'selection');
    await page.getByRole('button', { name: 'Tag', exact: true }).click();
    await page.locator('#retag-tag').fill('x'.repeat(101));
    await page.keyboard.press('Enter');
    await page.locator('#retag-tag-fault').getByText('Enter a tag of up to 100').waitFor();
    await assertIn(page, 'tag of many, with a fault');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Undo' }).waitFor();
    await assertIn(page, 'deleted');
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.locator('#rows').getByText('Monstera').waitFor();
    await page.getByText('Ficus lyrata').click();
    await page.locator('#plant-steps li').waitFor();
    await assertIn(page, 'plant');
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Edit Ficus' }).click();
    await page.locator('#edit-name').fill('');
    await page.locator('#edit-tag').fill('x'.repeat(101));
    await page.keyboard.press('Enter');
    await page.locator('#edit-tag-fault').getByText('Enter a tag of').waitFor();
    await assertIn(page, 'edit, with a fault');
    await page.locator('#edit-name').fill('Mine');
    await page.locator('#edit-tag').fill('');
    await switchTab(page, 'hidden');
    await app.call('PATCH', '/plants/2', { token, json: { name: 'W'.repeat(200) } });
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Keep theirs' }).waitFor();
    await assertIn(page, 'edit, with a choice');
    await page.getByRole('button', { name: 'Keep theirs' }).click();
    await switchTab(page, 'visible');
    const bob = await app.token('bob', { role: 'manager' });
    await app.call('PATCH', '/plants/3', { token: bob, json: { tag: 'changed' } });
    await page.locator('#rows .changed').getByText('changed').waitFor();
    await assertIn(page, 'changed by another user');
    await page.getByRole('button', { name: 'More' }).click();
    await assertIn(page, 'more');
    await page.getByRole('button', { name: 'Bin' }).click();
    await page.getByText('The bin is empty.').waitFor();
    await assertIn(page, 'an empty bin');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Add plant' }).click();
    await page.getByText('Choose the id yourself').click();
    await page.getByRole('textbox', { name: 'Id optional' }).fill('one');
    await page.keyboard.press('Enter');
    await page.getByText('Enter a whole number').waitFor();
    await page.getByText('Enter a name of').waitFor();
    await assertIn(page, 'add, with a fault');
    assert.deepEqual(
      errors.filter((error) => !error.includes('status of 412')),
      [],
    );
    await page.getByRole('textbox', { name: 'Id optional' }).fill('');
    await page.getByRole('textbox', { name: 'Name' }).fill('Basil');
    await app.storage.identity.revokeToken(idOf(token), Date.now());
    await page.locator('#add-submit').click();
    await page.getByRole('heading', { name: 'Your token no longer works' }).waitFor();
    await assertIn(page, 'revoked');
  });
}

/** Adds the tests of all states in these looks. */
export function testStates(looks: readonly Look[]): void {
  testStore(looks);
  const assertIn = async (page: Page, state: string) => assertAccessible(page, state, looks);

  inBrowser('signed out', async (t) => {
    const issuer = `https://${'a'.repeat(60)}.${'b'.repeat(60)}.example/realms/garden`;
    const signOn = { issuer, clientId: 'page', scope: 'openid' };
    const { address } = await startApp(t, { signOn });
    const { page } = await openPage(await browser(), `${address}/?code=c&state=s`);
    t.after(() => page.context().close());
    await page.getByText('This sign-in was not started in this tab.').waitFor();
    await page.getByText('I do not have a token').click();
    await page.getByRole('button', { name: 'Open the store' }).click();
    await page.getByText('Paste the whole token').waitFor();
    await assertIn(page, 'signed out, with a fault');
    await page.evaluate(`document.getElementById('renew').showModal()`);
    await assertIn(page, 'a new sign-in');
    await page.setViewportSize({ width: 360, height: 640 });
    const { width = Infinity } = (await page.locator('#renew-start').boundingBox()) ?? {};
    assert.ok(width < 320, 'the name of the provider wraps');
  });

  inBrowser('an invitation', async (t) => {
    const { page, app, token } = await openStore(t, { access: { scopes } });
    const json = { invitation: {} };
    const path = `/users/${encodeURIComponent('W'.repeat(50))}/tokens`;
    const { json: invited } = await app.call('POST', path, { token, json });
    await page.locator('#who').click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Open your store' }).waitFor();
    await page.locator('#sign-in-token').fill((invited as { token: string }).token);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Join' }).waitFor();
    await assertIn(page, 'an invitation');
  });

  inBrowser('a link to another store', async (t) => {
    const { page, app } = await openStore(t);
    await page.evaluate(`location.hash = 'token=${await app.token('bob')}'`);
    await page.getByRole('dialog', { name: 'Open the store' }).waitFor();
    await assertIn(page, 'question');
  });

  inBrowser('a plant that somebody else deleted', async (t) => {
    const { page, app, token } = await openStore(t);
    await switchTab(page, 'hidden');
    await app.call('DELETE', '/plants/2', { token });
    await page.locator('#rows').getByText('Ficus lyrata').click();
    await page.locator('#plant-steps').getByText('Deleted').waitFor();
    await assertIn(page, 'deleted elsewhere');
  });

  inBrowser('an import', async (t) => {
    const { page } = await openStore(t, { plants: [] });
    await page.getByRole('button', { name: 'Import a file' }).click();
    await assertIn(page, 'import');
    await choose(page, 'plants.csv', 'Bezeichnung;Preis\nMonstera;3,50\n');
    await page.getByText('Columns: choose them').waitFor();
    await assertIn(page, 'import, which asks for the columns');
    await choose(page, 'plants.csv', 'Name;Tag\nMonstera;indoor\n;herbs\n');
    await page.getByText('plants.csv: 2 rows').waitFor();
    await assertIn(page, 'import, before it begins');
    await submit(page).click();
    await done(page, 'Added 1 plant; 1 row was refused.');
    await assertIn(page, 'import, with a refused row');
  });

  inBrowser('an empty store, and a filter without a match', async (t) => {
    const { page } = await openStore(t, { plants: [] });
    await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
    await assertIn(page, 'empty');
    await page.evaluate("location.hash = 'tag=cactus'");
    await page.getByRole('heading', { name: 'No plants with the tag' }).waitFor();
    await page.getByLabel('Search').fill('aloe');
    await page.getByRole('heading', { name: 'containing “aloe”' }).waitFor();
    await assertIn(page, 'no match of a search');
  });

  inBrowser('offline, while rows are loading', async (t) => {
    const { page } = await openStore(t);
    await page.context().setOffline(true);
    await page.getByRole('button', { name: 'Show only the tag indoor' }).first().click();
    await page.getByText('The service does not respond.').first().waitFor();
    await assertIn(page, 'offline');
  });

  inBrowser('tokens that cannot write, or cannot read', async (t) => {
    const reader = await openStore(t, { access: { scopes: ['plants:read'] } });
    await assertIn(reader.page, 'read only');
    const writer = await openStore(t, { access: { scopes: ['plants:write'] } });
    await writer.page.getByRole('heading', { name: 'This token cannot list plants' }).waitFor();
    await assertIn(writer.page, 'write only');
  });

  inBrowser('sharing, with a fault and names of any length', async (t) => {
    const { page, app, token } = await openStore(t, { access: { scopes } });
    const name = `${'W'.repeat(150)} ${'ê\u0301\u0302'.repeat(10)}🌵`;
    const other = await app.token(name, { scopes });
    for (const [owner, user] of [
      [token, name],
      [other, 'alice'],
    ] as const) {
      const target = `/shares/${encodeURIComponent(user)}`;
      await app.call('PUT', target, { token: owner, json: { access: 'write' } });
    }
    await app.call('POST', '/plants', { token: other, json: { name } });
    await page.locator('#who').click();
    await page.locator('#sharing-open').click();
    await page.getByText('you can see, edit and delete their plants').waitFor();
    await page.locator('#sharing-user').fill('alice');
    await page.keyboard.press('Enter');
    await page.getByText('You cannot share with yourself.').waitFor();
    await assertIn(page, 'sharing');
    await page.getByRole('button', { name: 'End sharing with' }).click();
    await page.getByText('Sharing ends in both directions').waitFor();
    await assertIn(page, 'end of a share');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await page.locator('#rows .owner').nth(4).waitFor();
    await assertIn(page, 'plants of two owners');
  });

  inBrowser('people, and an invitation', async (t) => {
    const { page, app } = await openStore(t, { access: { scopes } });
    const token = await app.token('W'.repeat(150));
    await app.call('POST', '/plants', { token, json: { name: 'Ivy' } });
    await openPeople(page);
    await page.keyboard.press('Enter');
    await page.getByText('Enter a name of up to').waitFor();
    await assertIn(page, 'people, with a fault');
    await page.locator('#people-user').fill('ann');
    await page.keyboard.press('Enter');
    await page.locator('#invite-copy:focus').waitFor();
    await assertIn(page, 'an invitation');
    await page.getByRole('button', { name: 'Remove WWW' }).click();
    await page.locator('#remove-plants-to').fill('nobody');
    await page.keyboard.press('Enter');
    await page.getByText('The store has no user with this name.').waitFor();
    await assertIn(page, 'a removal');
  });

  inBrowser('a bin with names of any length', async (t) => {
    const { page, app, token } = await openStore(t);
    const names = ['W'.repeat(200), `${'ê\u0301\u0302'.repeat(10)}🌵`, 'Ivy'];
    for (const [at, name] of names.entries()) {
      const json = { name, tag: at === 2 ? '' : 'W'.repeat(100), id: at + 10 };
      await app.call('POST', '/plants', { token, json });
      await app.call('DELETE', `/plants/${at + 10}`, { token });
    }
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('button', { name: 'Bin' }).click();
    await page.getByRole('button', { name: 'Show 3 plants' }).click();
    await page.locator('#bin-plants li').nth(3).waitFor();
    await assertIn(page, 'bin');
    await page.getByRole('button', { name: 'Restore Ivy' }).click();
    await page.getByText('Restored “Ivy”.').waitFor();
    await assertIn(page, 'bin, after a restore');
    await app.call('PATCH', '/plants/12', { token, json: { name: names[0] } });
    await page.locator('#bin-close').click();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('button', { name: 'Go back to a time' }).click();
    await page.getByRole('button', { name: 'Go back', exact: true }).waitFor();
    await assertIn(page, 'what a return to a time would do');
  });

  inBrowser('tokens, and a new one', async (t) => {
    const { page, app } = await openStore(t, { access: { scopes } });
    const revoked = await app.token('alice');
    await app.call('DELETE', '/token', { token: revoked });
    await page.locator('#who').click();
    await page.locator('#tokens-open').click();
    await page.getByText('Expired and revoked').click();
    await page.locator('#tokens-label').fill('x'.repeat(101));
    await page.keyboard.press('Enter');
    await page.locator('#tokens-label-fault').getByText('Enter a label of up to 100').waitFor();
    await assertIn(page, 'tokens, with a fault');
    await page.locator('#tokens-label').fill('W'.repeat(100));
    await page.keyboard.press('Enter');
    await page.getByText('it is not shown again').waitFor();
    await assertIn(page, 'a new token');
  });
}
