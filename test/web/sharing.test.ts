import assert from 'node:assert/strict';
import { it } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { violations } from '../support/accessibility.ts';
import { withoutBrowser } from '../support/browser.ts';
import { openSharing, sharesOf } from './sharing.ts';
import { assertNames, browserOfFile, openStore, press, shelf, tabTo } from './store.ts';

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
    await page.getByText('“bob” can see, edit and delete all your plants.').waitFor();
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

it(
  'plants of others are told apart, not changed, and leave with their share',
  { skip },
  async (t) => {
    const { page, app } = await openStore(t, browser(), { access: { scopes, role: 'member' } });
    const bob = await app.token('bob', { scopes });
    await app.call('POST', '/plants', { token: bob, json: { name: 'Of bob' } });
    await app.call('PUT', '/shares/alice', { token: bob, json: { access: 'read' } });
    await openSharing(page);
    await page.getByRole('button', { name: 'Close' }).click();
    await assertNames(page, [...shelf.map(({ name }) => name), 'Of bob']);
    assert.deepEqual(await violations(page), []);
    const owners = page.locator('#rows .owner');
    assert.deepEqual(await owners.allInnerTexts(), ['alice', 'alice', 'alice', 'alice', 'bob']);
    assert.equal(await page.getByRole('checkbox').count(), 4);
    assert.equal(await page.getByRole('button', { name: 'Edit Of bob' }).count(), 0);
    await page.locator('#rows').getByText('Of bob').click();
    await page.locator('#plant-steps').getByText('Added').waitFor();
    await page.locator('#plant-facts').getByText('bob', { exact: true }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Delete' }).count(), 0);
    await press(page, 'Escape', 'Delete', 'F2');
    await page.locator('#grid:focus').waitFor();
    assert.equal(await page.locator('#edit').isVisible(), false);

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
  },
);
