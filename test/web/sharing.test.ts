import assert from 'node:assert/strict';
import { it } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { withoutBrowser } from '../support/browser.ts';
import { openSharing, sharesOf } from './sharing.ts';
import {
  assertNames,
  browserOfFile,
  deleteChosen,
  openStore,
  press,
  shelf,
  tabTo,
  toast,
} from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

it(
  'the keyboard alone shares a collection, changes the share, and ends it',
  { skip },
  async (t) => {
    const { page, app, token, errors } = await openStore(t, browser(), { access: { scopes } });
    const bob = await app.token('bob');
    await page.locator('#who').focus();
    await press(page, 'Enter');
    await tabTo(page, 'sharing-open');
    await press(page, 'Enter');
    await page.getByText('You share with nobody.').waitFor();
    await press(page, 'Enter');
    await page.locator('#sharing-user-fault').getByText('Enter a user name of').waitFor();
    for (const [name, fault] of [
      ['..', 'The page cannot share with a user called “..”.'],
      ['alice', 'You cannot share with yourself.'],
    ] as const) {
      await page.keyboard.insertText(name);
      await press(page, 'Enter');
      await page.getByText(fault).waitFor();
      await press(page, 'Control+a');
    }
    await page.keyboard.insertText(' bob ');
    await press(page, 'Enter');
    await page
      .getByText('“bob” can see all your plants. The spaces around the name were removed.')
      .waitFor();
    assert.deepEqual(((await app.call('GET', '/plants', { token: bob })).json as []).length, 4);

    const access = page.getByRole('combobox', { name: 'What bob can do' });
    await access.focus();
    await press(page, 'ArrowDown');
    await page.getByText('“bob” can see and delete all your plants.').waitFor();
    const given = [{ user: 'bob', access: 'write' }];
    assert.deepEqual(await sharesOf(app, token), { given, received: [] });

    await press(page, 'Tab', 'Enter');
    await page.getByRole('dialog', { name: 'End sharing with “bob”?' }).waitFor();
    await press(page, 'Escape');
    assert.equal(await page.locator(':focus').innerText(), 'End', 'nothing has ended');
    await press(page, 'Enter', 'Tab', 'Enter');
    await page.getByText('You and “bob” no longer share plants.').waitFor();
    await page.getByText('You share with nobody.').waitFor();
    assert.deepEqual(await sharesOf(app, token), { given: [], received: [] });
    await press(page, 'Escape');
    await page.locator('#who:focus').waitFor();
    const unexpected = errors.filter((error) => !error.includes('status of 400'));
    assert.deepEqual(unexpected, []);
  },
);

it('plants of others can be seen, not deleted, and leave with their share', { skip }, async (t) => {
  const { page, app } = await openStore(t, browser(), { access: { scopes, role: 'member' } });
  const bob = await app.token('bob', { scopes });
  await app.call('POST', '/plants', { token: bob, json: { name: 'Of bob' } });
  await app.call('PUT', '/shares/alice', { token: bob, json: { access: 'read' } });
  await openSharing(page);
  await page.getByRole('button', { name: 'Close' }).click();
  await assertNames(page, [...shelf.map(({ name }) => name), 'Of bob']);
  await page.getByRole('checkbox', { name: 'Select Of bob' }).click();
  await deleteChosen(page);
  await toast(page, '1 plant could not be deleted. Some users let you see their plants').waitFor();
  await page.locator('#rows').getByText('Of bob').waitFor();

  await openSharing(page);
  await page.getByText('you can see their plants').waitFor();
  await page.getByRole('button', { name: 'End what bob shares with you' }).click();
  await page.getByText('ask them to share again.').waitFor();
  // The response is lost, so the page repeats the request.
  await page.route(
    '**/shares/bob',
    async (route) => {
      await route.fetch();
      await route.abort();
    },
    { times: 1 },
  );
  await page.getByRole('button', { name: 'End sharing', exact: true }).click();
  await page.locator('#sharing .waiting').getByText('The service does not respond.').waitFor();
  await page.clock.runFor(15_000);
  await page.getByText('Nobody shares with you.').waitFor();
  await page.locator('#sharing-received-title:focus').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await assertNames(
    page,
    shelf.map(({ name }) => name),
  );
});
